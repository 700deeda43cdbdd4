#include "compiler/spec/operators/stu_layer/spec.h"

#include "compiler/spec/operators/stu_layer/input_steps.h"
#include "compiler/spec/operators/stu_layer/output_steps.h"

namespace hstujit {

namespace {

// The order of inputs.
std::vector<std::string> layer_inputs() {
  return {"x",
          "input_norm_weight",
          "input_norm_bias",
          "uvqk_weight",
          "uvqk_bias",
          "output_weight",
          "output_norm_weight",
          "output_norm_bias",
          "normed_x",
          "uvqk",
          "attn",
          "y",
          "dout",
          "eps",
          "dropout_ratio",
          "seed",
          "offset"};
}

Program layer_forward(const StuLayerParams& params, const StuInputSteps& input, const StuOutputSteps& output) {
  ProgramBuilder program;
  program.inputs(layer_inputs());
  program.matrix(ArgumentRole::kOutput, "out", params.dtype, params.width, "seq_offsets", "result");
  if (params.training) {
    program.matrix(ArgumentRole::kOutput, "attn", params.dtype, output.v_columns(), "seq_offsets",
                   "attention output, for backward");
  } else {
    program.temporary("attn", params.dtype, output.v_columns());
  }
  input.project(program, params.training);
  input.attend(program, {"attn", 0});
  output.compute(program, {"attn"}, {"uvqk", 0}, params.training);
  return program.finish();
}

Program layer_backward(const StuLayerParams& params, const StuInputSteps& input, const StuOutputSteps& output) {
  ProgramBuilder program;
  program.inputs(layer_inputs());
  program.matrix(ArgumentRole::kInput, "attn", params.dtype, output.v_columns(), "seq_offsets",
                 "attention output, as forward gave it");
  program.temporary("dattn", params.dtype, output.v_columns());
  input.project_again(program);
  output.compute_backward(program, {"attn"}, {"uvqk", 0}, {"dattn"}, {"duvqk", 0});
  input.attend_backward(program, {"dattn", 0});
  input.project_backward(program, ProgramValue{"dout"});
  return program.finish();
}

}  // namespace

OpSpecPtr parse_stu_layer(const Json& json, const std::string& path, Mistakes& mistakes) {
  const auto params = read_attention_params<StuLayerParams>(json, path, mistakes);
  if (!params || !check_weight_dtype(params->weight_dtype, params->dtype, path, mistakes)) return nullptr;
  const auto input = StuInputSteps::make(*params, *params, *params, path, mistakes);
  const StuGate gate{params->heads, params->hidden_dim, params->dtype, /*silu_u=*/params->concat_u, "silu"};
  const auto output = StuOutputSteps::make(gate, *params, *params, path, mistakes);
  if (!input || !output) return nullptr;
  std::optional<Program> backward;
  if (params->training) backward = layer_backward(*params, *input, *output);
  return std::make_shared<StuLayerSpec>(*params, layer_forward(*params, *input, *output), std::move(backward));
}

Json schema_stu_layer() { return attention_schema<StuLayerParams>(); }

Json StuLayerSpec::to_json() const { return operator_json(op(), params_); }

}  // namespace hstujit
