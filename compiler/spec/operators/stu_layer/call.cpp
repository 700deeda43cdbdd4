#include "compiler/spec/operators/stu_layer/call.h"

#include "compiler/spec/operators/hstu_attention/call.h"
#include "compiler/spec/operators/hstu_attention/operands/call.h"

namespace hstujit {

void declare_stu(CallDeclaration& call) {
  call.size("width", {{"x input_norm_weight input_norm_bias", -1}, {"uvqk_weight", -2}, {"output_weight dout", -1}})
      .dtype("weight_dtype", "input_norm_weight input_norm_bias output_norm_weight output_norm_bias")
      .keywords("norm typical_rows")
      .shaping("norm")
      .usual("eps", 1e-5);
}

void declare_stu_input(CallDeclaration& call) {
  call.presence("uvqk_bias", "uvqk_bias")
      .presence("recompute_normed_x", "input_norm_bias", "normed_x")
      .presence("recompute_uvqk", "uvqk_bias", "uvqk")
      .letter("P", "uvqk_weight", -1);
}

void declare_stu_output(CallDeclaration& call) {
  call.presence("dropout", "dropout_ratio seed offset")
      .presence("seed_tensor", "seed_tensor", "seed", "dropout")
      .presence("recompute_y", "", "y")
      .keywords("group_norm concat_u concat_x")
      .letter("Y", "output_weight", -2);
}

void declare_stu_variant(CallDeclaration& call) { call.keywords("silu_uvqk residual"); }

void declare_stu_memory(CallDeclaration& call) {
  call.presence("recompute_attn", "", "attn").keywords("backward_head_groups");
}

CallDeclaration& stu_call(CallDeclaration& call) {
  attention_call(call);
  declare_stu(call);
  declare_stu_input(call);
  declare_stu_output(call);
  declare_stu_variant(call);
  declare_stu_memory(call);
  call.dtype("dtype", "x uvqk_weight uvqk_bias output_weight hidden_states uvqk normed_x attn y dout")
      .keywords("alignment training")
      .shaping("training")
      .forward_only("training")
      .gradients(
          "x input_norm_weight input_norm_bias uvqk_weight uvqk_bias output_weight output_norm_weight "
          "output_norm_bias");
  return operand_tensors(call);
}

void call_stu_layer(CallDeclaration& call) {
  stu_call(call)
      .presence("targets_only", "seq_offsets_q max_delta_len")
      .presence("row_numbers", "row_numbers", "", "dropout")
      .dtype("offsets_dtype", "seq_offsets seq_offsets_q num_targets num_contexts");
}

}  // namespace hstujit
