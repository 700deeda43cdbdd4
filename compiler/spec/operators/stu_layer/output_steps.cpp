#include "compiler/spec/operators/stu_layer/output_steps.h"

#include <fmt/format.h>

#include "compiler/spec/fields_json.h"
#include "compiler/spec/mistakes.h"

namespace hstujit {

namespace {

ProgramValues gate_operands(const ProgramValue& attn, const ProgramValue& u) {
  return {{"x", attn},
          {"u", u},
          {"weight", {"output_norm_weight", -1, "factor of each column, or head, of the norm of the attention output"}},
          {"bias", {"output_norm_bias", -1, "added to each column, or head, of the norm of the attention output"}}};
}

}  // namespace

std::optional<StuOutputSteps> StuOutputSteps::make(const StuGate& gate, const StuParams& stu,
                                                   const StuOutputParams& output, const std::string& path,
                                                   Mistakes& mistakes) {
  StuOutputSteps steps;
  steps.v_ = gate.heads * gate.hidden_dim;
  steps.y_columns_ = steps.v_ * (1 + (output.concat_u ? 1 : 0) + (output.concat_x ? 1 : 0));
  steps.dtype_ = gate.dtype;
  steps.output_ = output;
  const auto refuse_heads = [&](std::string_view what, int64_t columns, int64_t most) {
    const std::string place = join_path(path, "heads");
    mistakes.check(
        place, Status(Code::kInvalidConfig, fmt::format("{} is {}, so {} has {} columns; allowed: at most {}", place,
                                                        gate.heads, what, columns, most)));
  };
  constexpr int64_t kMaxGroups = 64;
  if (steps.v_ > RowParams::kMaxWidth) {
    refuse_heads("the attention output", steps.v_, RowParams::kMaxWidth);
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
  steps.gate_ = spec({{"op", "hstu_norm_mul_dropout"},
                      {"width", steps.v_},
                      {"dtype", dtype},
                      {"weight_dtype", to_string(stu.weight_dtype)},
                      {"norm", stu.norm},
                      {"group_norm", output.group_norm},
                      {"heads", output.group_norm ? gate.heads : 1},
                      {"mul_u_activation", gate.mul_u_activation},
                      {"silu_u", gate.silu_u},
                      {"concat_u", output.concat_u},
                      {"concat_x", output.concat_x},
                      {"dropout", output.dropout}});
  const auto product = [&](std::string_view op, int64_t k, int64_t n) { return product_of(stu, op, k, n, gate.dtype); };
  Json projection = product("addmm", steps.y_columns_, stu.width),
       dgrad = product("addmm", stu.width, steps.y_columns_);
  projection["input"] = "matrix";
  dgrad["transpose_mat2"] = true;
  steps.projection_ = spec(projection);
  steps.projection_dgrad_ = spec(dgrad);
  steps.projection_wgrad_ = spec(product("addmm_wgrad", steps.y_columns_, stu.width));
  for (const OpSpecPtr& made : {steps.gate_, steps.projection_, steps.projection_dgrad_, steps.projection_wgrad_}) {
    if (made == nullptr) return std::nullopt;
  }
  return steps;
}

void StuOutputSteps::add_gate(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u) const {
  ProgramValues operands = gate_operands(attn, u);
  operands.emplace("out", ProgramValue{"y", -1, "what is projected"});
  program.step(gate_, Direction::kForward, operands);
}

void StuOutputSteps::compute(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u,
                             bool kept) const {
  if (!kept || output_.recompute_y) program.temporary("y", dtype_, y_columns_);
  add_gate(program, attn, u);
  program.step(projection_, Direction::kForward,
               {{"mat1", {"y"}},
                {"mat2", {"output_weight", -1, "weights of the projection"}},
                {"input", {"x", -1, "rows, added to the projection"}},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)}});
}

void StuOutputSteps::compute_backward(ProgramBuilder& program, const ProgramValue& attn, const ProgramValue& u,
                                      const ProgramValue& dattn, const ProgramValue& du) const {
  if (output_.recompute_y) {
    program.temporary("y", dtype_, y_columns_);
    add_gate(program, attn, u);
  }
  program.temporary("dy", dtype_, y_columns_);
  const ProgramValue dout{"dout", -1, "gradient of the result"};
  program.step(projection_wgrad_, Direction::kForward,
               {{"mat1", {"y", -1, "what was projected, as forward gave it"}},
                {"dout", dout},
                {"alpha", ProgramValue::number(1)},
                {"out", {"doutput_weight", -1, "gradient of output_weight, summed over all rows"}}});
  program.step(projection_dgrad_, Direction::kForward,
               {{"mat1", dout}, {"mat2", {"output_weight"}}, {"alpha", ProgramValue::number(1)}, {"out", {"dy"}}});
  ProgramValues operands = gate_operands(attn, u);
  operands.insert({{"dout", {"dy"}},
                   {"dx", dattn},
                   {"du", du},
                   {"dweight", {"doutput_norm_weight", -1, "gradient of output_norm_weight, summed over all rows"}},
                   {"dbias", {"doutput_norm_bias", -1, "gradient of output_norm_bias, summed over all rows"}}});
  program.step(gate_, Direction::kBackward, operands);
}

}  // namespace hstujit
