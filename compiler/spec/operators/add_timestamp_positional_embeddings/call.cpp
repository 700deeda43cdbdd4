#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_add_timestamp_positional_embeddings(CallDeclaration& call) {
  sequence_call(call, "seq_embeddings", "position_embeddings_weight timestamp_embeddings_weight")
      .dtype("offsets_dtype", "seq_offsets num_targets")
      .presence("num_targets", "num_targets")
      .presence("query_time", "query_time")
      .keywords("interleave_targets time_bucket_fn round_embeddings");
}

}  // namespace hstujit
