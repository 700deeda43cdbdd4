#include "compiler/spec/operators/stu_layer/call.h"

namespace hstujit {

void call_stu_stack(CallDeclaration& call) {
  stu_call(call)
      .size("layers", {{"input_norm_weight input_norm_bias uvqk_weight uvqk_bias output_weight output_norm_weight "
                        "output_norm_bias",
                        0}})
      .shaping("layers")
      .letter("W", "hidden_states", 1);
}

}  // namespace hstujit
