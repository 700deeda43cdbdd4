#include "compiler/spec/operators/hstu_attention/call.h"

namespace hstujit {

void call_delta_hstu_attention(CallDeclaration& call) {
  attention_call_of_heads(call)
      .dtype("offsets_dtype", "seq_offsets seq_offsets_q num_targets num_contexts")
      .presence("jagged_queries", "seq_offsets_q");
}

}  // namespace hstujit
