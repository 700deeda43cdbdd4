#include "compiler/spec/operators/hstu_compute_output/spec.h"

#include "compiler/spec/mistakes.h"
#include "compiler/spec/operators/stu_layer/output_steps.h"
#include "compiler/spec/read_params.h"

namespace hstujit {

namespace {

// The order of inputs.
std::vector<std::string> output_inputs() {
  return {"attn",
          "u",
          "x",
          "output_norm_weight",
          "output_norm_bias",
          "output_weight",
          "y",
          "dout",
          "eps",
          "dropout_ratio",
          "seed",
          "seed_tensor",
          "offset"};
}

Program output_forward(const StuOutputSteps& output, bool training) {
  ProgramBuilder program;
  program.inputs(output_inputs());
  output.compute(program, {"attn", -1, "attention output"}, {"u", -1, "rows that it is gated with"}, training);
  return program.finish();
}

Program output_backward(const StuOutputSteps& output) {
  ProgramBuilder program;
  program.inputs(output_inputs());
  output.compute_backward(program, {"attn", -1, "attention output"}, {"u", -1, "rows that it is gated with"},
                          {"dattn", -1, "gradient of attn"}, {"du", -1, "gradient of u"}, {});
  return program.finish();
}

}  // namespace

OpSpecPtr parse_hstu_compute_output(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto read = read_params<HstuComputeOutputParams>(json, path, mistakes);
  if (!read || !check_weight_dtype(read->weight_dtype, read->dtype, path, mistakes)) return nullptr;
  if (read->dtype != DataType::kFp32) read->precision = MatmulPrecision::kTf32;
  const HstuComputeOutputParams& params = *read;
  const StuGate gate{params.heads,     params.hidden_dim, params.dtype,
                     params.precision, params.silu_u,     params.mul_u_activation};
  const auto output = StuOutputSteps::make(gate, params, params, path, mistakes);
  if (!output) return nullptr;
  std::optional<Program> backward;
  if (params.training) backward = output_backward(*output);
  return std::make_shared<HstuComputeOutputSpec>(params, output_forward(*output, params.training), std::move(backward));
}

Json schema_hstu_compute_output() { return fields_schema<HstuComputeOutputParams>(); }

Json HstuComputeOutputSpec::to_json() const { return operator_json(op(), params_); }

}  // namespace hstujit
