#include "compiler/spec/operators/stu_layer/spec.h"

#include "compiler/spec/operators/stu_layer/layer_steps.h"
#include "compiler/spec/operators/stu_layer/target_steps.h"

namespace hstujit {

namespace {

Program layer_forward(const StuLayerParams& params, const StuLayerSteps& layer) {
  ProgramBuilder program;
  program.inputs(StuLayerSteps::inputs());
  program.matrix(ArgumentRole::kOutput, "out", params.dtype, params.width, "seq_offsets", "result");
  if (params.training) layer.keep(program, ArgumentRole::kOutput);
  layer.forward(program, {"x", -1, "rows, added to the projection"}, {"out"});
  return program.finish();
}

Program layer_backward(const StuLayerSteps& layer) {
  ProgramBuilder program;
  program.inputs(StuLayerSteps::inputs());
  program.outputs(StuLayerSteps::gradients());
  layer.keep(program, ArgumentRole::kInput);
  layer.input().take_weights(program);
  layer.backward(program, {"x"}, {"dout", -1, "gradient of the result"}, {"dx", -1, "gradient of x"});
  return program.finish();
}

}  // namespace

OpSpecPtr parse_stu_layer(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto params = read_layer_params<StuLayerParams>(json, path, mistakes);
  if (!params) return nullptr;
  if (!params->dropout) params->row_numbers = false;
  std::optional<Program> backward;
  if (params->targets_only) {
    params->backward_head_groups = 1;  // there is no one matrix of u, v, q and k to go through by groups of heads
    const auto targets = StuTargetSteps::make(*params, path, mistakes);
    if (!targets) return nullptr;
    if (params->training) backward = targets->backward();
    return std::make_shared<StuLayerSpec>(*params, targets->forward(), std::move(backward));
  }
  const auto layer = StuLayerSteps::make(*params, path, mistakes);
  if (!layer) return nullptr;
  if (params->training) backward = layer_backward(*layer);
  return std::make_shared<StuLayerSpec>(*params, layer_forward(*params, *layer), std::move(backward));
}

Json schema_stu_layer() { return attention_schema<StuLayerParams>(); }

Json StuLayerSpec::to_json() const { return operator_json(op(), params_); }

}  // namespace hstujit
