#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_split_2d_jagged(CallDeclaration& call) {
  sequence_call(call, "values", "", "left right")
      .dtype("offsets_dtype", "offsets_left offsets_right")
      .presence("dense_left", "max_len_left", "offsets_left")
      .presence("dense_right", "max_len_right", "offsets_right")
      .presence("prefix", "n_prefix_to_right")
      .shaping("left_only")
      .forward_only("left_only");
}

}  // namespace hstujit
