#include "compiler/spec/operators/stu_layer/output_steps.h"

#include <fmt/format.h>

#include "compiler/spec/fields_json.h"
#include "compiler/spec/mistakes.h"
#include "compiler/spec/step_json.h"

namespace hstujit {

namespace {

ProgramValues gate_operands(const ProgramValue& attn, const ProgramValue& u, const StuNames& names) {
  return {
      {"x", attn},
      {"u", u},
      {"offset", names.offset()},
      {"weight",
       names.weight("output_norm_weight", "factor of each column, or head, of the norm of the attention output")},
      {"bias", names.weight("output_norm_bias", "added to each column, or head, of the norm of the attention output")}};
}

}  // namespace

std::optional<StuOutputSteps> StuOutputSteps::make(const StuGate& gate, const StuParams& stu,
                                                   const StuOutputParams& output, const std::string& path,
                                                   Mistakes& mistakes) {
  StuOutputSteps steps;
  steps.v_ = gate.heads * gate.hidden_dim;
  steps.y_columns_ = steps.v_ * (1 + (output.concat_u ? 1 : 0) + (output.concat_x ? 1 : 0));
  steps.dtype_ = gate.dtype;
  steps.residual_ = gate.residual;
  steps.output_ = output;
  constexpr int64_t kMaxGroups = 64;
  if (steps.v_ > RowParams::kMaxWidth) {
    refuse_heads(gate.heads, fmt::format("the attention output has {} columns", steps.v_),
                 fmt::format("at most {}", RowParams::kMaxWidth), path, mistakes);
    return std::nullopt;
  }
  if (output.group_norm && gate.heads > kMaxGroups) {
    const std::string place = join_path(path, "heads");
    mistakes.check(place, Status(Code::kInvalidConfig, fmt::format("{} is {}; allowed: at most {} with group_norm",
                                                                   place, gate.heads, kMaxGroups)));
    return std::nullopt;
  }
  const auto spec = [&](const Json& json) { return parse_op_spec(json, path, mistakes); };
  const std::string dtype(to_string(gate.dtype));
  steps.gate_ = spec(step_json("hstu_norm_mul_dropout", {{"width", steps.v_},
                                                         {"dtype", dtype},
                                                         {"weight_dtype", to_string(stu.weight_dtype)},
                                                         {"alignment", gate.alignment},
                                                         {"norm", stu.norm},
                                                         {"group_norm", output.group_norm},
                                                         {"heads", output.group_norm ? gate.heads : 1},
                                                         {"mul_u_activation", gate.mul_u_activation},
                                                         {"silu_u", gate.silu_u},
                                                         {"concat_u", output.concat_u},
                                                         {"concat_x", output.concat_x},
                                                         {"dropout", output.dropout},
                                                         {"seed_tensor", output.seed_tensor},
                                                         {"row_numbers", gate.row_numbers}}));
  const auto product = [&](std::string_view op, int64_t k, int64_t n) {
    return product_of(stu, op, k, n, gate.dtype, gate.precision, gate.alignment);
  };
  Json projection = product("addmm", steps.y_columns_, stu.width),
       dgrad = product("addmm", stu.width, steps.y_columns_);
  projection["input"] = gate.residual ? "matrix" : "none";
  dgrad["transpose_mat2"] = true;
  steps.projection_ = spec(projection);
  steps.projection_dgrad_ = spec(dgrad);
  steps.projection_wgrad_ = spec(product("addmm_wgrad", steps.y_columns_, stu.width));
  for (const OpSpecPtr& made : {steps.gate_, steps.projection_, steps.projection_dgrad_, steps.projection_wgrad_}) {
    if (made == nullptr) return std::nullopt;
  }
  return steps;
}

ProgramValue StuOutputSteps::place_y(ProgramBuilder& program, const std::string& name, const StuColumns& free,
                                     const StuNames& names) const {
  if (y_columns_ <= free.columns) return free.matrix.columns(free.first);
  const StuMatrix matrix = names.between(name);
  program.temporary(matrix.name, dtype_, y_columns_);
  return matrix.all();
}

void StuOutputSteps::keep(ProgramBuilder& program, ArgumentRole role, int64_t layers, const Dimension& rows) const {
  if (output_.recompute_y) return;
  program.tensor(role, "y", dtype_, {rows, Dimension::constant(layers * y_columns_)},
                 role == ArgumentRole::kInput ? "what was projected, as forward gave it" : "what is projected");
}

void StuOutputSteps::add_gate(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u,
                              const ProgramValue& y, const StuNames& names) const {
  ProgramValues operands = gate_operands(attn, u, names);
  operands.emplace("out", y);
  program.step(gate_, Direction::kForward, operands);
}

void StuOutputSteps::compute(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u, bool kept,
                             const StuColumns& free, const ProgramValue& x, const ProgramValue& out,
                             const StuNames& names) const {
  const ProgramValue y =
      keeps_y(kept) ? names.kept("y", y_columns_).all("what is projected") : place_y(program, "y", free, names);
  add_gate(program, attn, u, y, names);
  program.step(projection_, Direction::kForward,
               {{"mat1", y},
                {"mat2", names.weight("output_weight", "weights of the projection")},
                {"input", x},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", out}});
}

void StuOutputSteps::compute_backward(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u,
                                      const ProgramValue& dattn, const ProgramValue& du, const StuColumns& free,
                                      const ProgramValue& dout, const StuNames& names) const {
  ProgramValue y = names.kept("y", y_columns_).all("what was projected, as forward gave it");
  if (output_.recompute_y) {
    y = place_y(program, "y", free, names);
    add_gate(program, attn, u, y, names);
  }
  program.step(projection_wgrad_, Direction::kForward,
               {{"mat1", y},
                {"dout", dout},
                {"alpha", ProgramValue::number(1)},
                {"out", names.weight("doutput_weight", "gradient of output_weight, summed over all rows")}});
  const ProgramValue dy = place_y(program, "dy", free, names);
  program.step(
      projection_dgrad_, Direction::kForward,
      {{"mat1", dout}, {"mat2", names.weight("output_weight")}, {"alpha", ProgramValue::number(1)}, {"out", dy}});
  ProgramValues operands = gate_operands(attn, u, names);
  operands.insert(
      {{"dout", dy},
       {"dx", dattn},
       {"du", du},
       {"dweight", names.weight("doutput_norm_weight", "gradient of output_norm_weight, summed over all rows")},
       {"dbias", names.weight("doutput_norm_bias", "gradient of output_norm_bias, summed over all rows")}});
  program.step(gate_, Direction::kBackward, operands);
}

}  // namespace hstujit
