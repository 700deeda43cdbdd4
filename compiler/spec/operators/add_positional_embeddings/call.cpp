#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_add_positional_embeddings(CallDeclaration& call) {
  sequence_call(call, "seq_embeddings", "position_embeddings_weight")
      .dtype("offsets_dtype", "seq_offsets num_targets")
      .presence("num_targets", "num_targets")
      .keywords("interleave_targets");
}

}  // namespace hstujit
