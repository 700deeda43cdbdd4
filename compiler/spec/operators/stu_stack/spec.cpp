#include "compiler/spec/operators/stu_stack/spec.h"

#include "compiler/spec/operators/stu_layer/layer_steps.h"

namespace hstujit {

namespace {

class Stack {
 public:
  Stack(const StuStackParams& params, const StuLayerSteps& layer) : params_(params), layer_(layer) {}

  Program forward() const;
  Program backward() const;

 private:
  ProgramBuilder builder(ArgumentRole kept) const;
  // The input of a layer, which is what the one before it gives.
  ProgramValue input(ProgramBuilder& program, int64_t layer) const;

  const StuStackParams& params_;
  const StuLayerSteps& layer_;
};

ProgramBuilder Stack::builder(ArgumentRole kept) const {
  ProgramBuilder program;
  program.inputs(StuLayerSteps::inputs({"hidden_states"}));
  program.outputs(StuLayerSteps::gradients());
  program.stacked(params_.layers);
  if (kept == ArgumentRole::kOutput)
    program.matrix(kept, "out", params_.dtype, params_.width, "seq_offsets", "result of the last layer");
  if (!params_.training) return program;
  if (params_.layers > 1) {
    program.matrix(kept, "hidden_states", params_.dtype, (params_.layers - 1) * params_.width, "seq_offsets",
                   "inputs of the layers after the first one, side by side");
  }
  layer_.keep(program, kept, params_.layers);
  return program;
}

ProgramValue Stack::input(ProgramBuilder& program, int64_t layer) const {
  if (layer == 0) return {"x", -1, "rows, the input of the first layer"};
  if (params_.training) return {"hidden_states", (layer - 1) * params_.width};
  const StuMatrix between = StuNames(layer).between("hidden_states");
  program.temporary(between.name, params_.dtype, params_.width);
  return between.all();
}

Program Stack::forward() const {
  ProgramBuilder program = builder(ArgumentRole::kOutput);
  ProgramValue x = input(program, 0);
  for (int64_t layer = 0; layer < params_.layers; ++layer) {
    const ProgramValue out = layer + 1 < params_.layers ? input(program, layer + 1) : ProgramValue{"out"};
    layer_.forward(program, x, out, StuNames(layer));
    x = out;
  }
  return program.finish();
}

Program Stack::backward() const {
  ProgramBuilder program = builder(ArgumentRole::kInput);
  layer_.input().take_weights(program, params_.layers);
  ProgramValue dout{"dout", -1, "gradient of the result"};
  for (int64_t layer = params_.layers; layer-- > 0;) {
    const StuNames names(layer, /*adds=*/layer + 1 < params_.layers);
    ProgramValue dx{"dx", -1, "gradient of x"};
    if (layer > 0) {
      dx = names.between("dx").all();
      program.temporary(dx.name, params_.dtype, params_.width);
    }
    layer_.backward(program, input(program, layer), dout, dx, names);
    dout = dx;
  }
  return program.finish();
}

}  // namespace

OpSpecPtr parse_stu_stack(const Json& json, const std::string& path, Mistakes& mistakes) {
  const auto params = read_layer_params<StuStackParams>(json, path, mistakes);
  if (!params) return nullptr;
  const auto layer = StuLayerSteps::make(*params, path, mistakes);
  if (!layer) return nullptr;
  const Stack stack(*params, *layer);
  std::optional<Program> backward;
  if (params->training) backward = stack.backward();
  return std::make_shared<StuStackSpec>(*params, stack.forward(), std::move(backward));
}

Json schema_stu_stack() { return attention_schema<StuStackParams>(); }

Json StuStackSpec::to_json() const { return operator_json(op(), params_); }

}  // namespace hstujit
