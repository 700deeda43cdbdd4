#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_add_positional_embeddings() {
  return sequence_call("seq_embeddings", "position_embeddings_weight")
      .dtype("offsets_dtype", "seq_offsets num_targets")
      .presence("num_targets", "num_targets")
      .keywords("interleave_targets");
}

}  // namespace hstujit
