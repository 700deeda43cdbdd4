#include "compiler/spec/operators/hstu_preprocess_and_attention/spec.h"

#include "compiler/spec/operators/stu_layer/input_steps.h"

namespace hstujit {

namespace {

// The order of inputs.
std::vector<std::string> preprocess_inputs() {
  return {"x",  "input_norm_weight", "input_norm_bias", "uvqk_weight", "uvqk_bias", "normed_x", "uvqk", "du", "dattn",
          "eps"};
}

Program preprocess_forward(const StuInputSteps& input, bool training) {
  ProgramBuilder program;
  program.inputs(preprocess_inputs());
  if (training) input.keep(program, ArgumentRole::kOutput);
  input.project(program, training);
  input.activate(program, training, {"u", -1, "silu of the projection's first columns"});
  input.attend(program, training, {"attn", -1, "attention output"});
  return program.finish();
}

Program preprocess_backward(const StuInputSteps& input) {
  ProgramBuilder program;
  program.inputs(preprocess_inputs());
  program.outputs({"duvqk_weight", "duvqk_bias", "dx", "dinput_norm_weight", "dinput_norm_bias"});
  input.keep(program, ArgumentRole::kInput);
  input.take_weights(program);
  input.begin_backward(program);
  input.activate_backward(program, {"du", -1, "gradient of u"});
  input.attend_backward(program, {"dattn"});
  program.temporary("dnormed_x", input.dtype(), input.width());
  input.project_backward(program, {"dnormed_x"}, std::nullopt);
  return program.finish();
}

}  // namespace

OpSpecPtr parse_hstu_preprocess_and_attention(const Json& json, const std::string& path, Mistakes& mistakes) {
  const auto params = read_layer_params<HstuPreprocessAndAttentionParams>(json, path, mistakes);
  if (!params) return nullptr;
  const auto input = StuInputSteps::make(*params, *params, *params, path, mistakes);
  if (!input) return nullptr;
  std::optional<Program> backward;
  if (params->training) backward = preprocess_backward(*input);
  return std::make_shared<HstuPreprocessAndAttentionSpec>(*params, preprocess_forward(*input, params->training),
                                                          std::move(backward));
}

Json schema_hstu_preprocess_and_attention() { return attention_schema<HstuPreprocessAndAttentionParams>(); }

Json HstuPreprocessAndAttentionSpec::to_json() const { return operator_json(op(), params_); }

}  // namespace hstujit
