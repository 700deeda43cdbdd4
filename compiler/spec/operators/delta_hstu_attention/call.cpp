#include "compiler/spec/operators/hstu_attention/call.h"

namespace hstujit {

CallDeclaration call_delta_hstu_attention() {
  return attention_call_of_heads()
      .dtype("offsets_dtype", "seq_offsets seq_offsets_q num_targets")
      .presence("jagged_queries", "seq_offsets_q");
}

}  // namespace hstujit
