#include "compiler/spec/operators/stu_layer/input_steps.h"

#include <fmt/format.h>

#include "compiler/spec/mistakes.h"
#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {

ProgramValues input_norm_operands() {
  return {{"weight", {"input_norm_weight", -1, "factor of each column, of the norm of x"}},
          {"bias", {"input_norm_bias", -1, "added to each column, of the norm of x"}}};
}

bool check_projection_columns(int64_t heads, int64_t columns, bool bias, const std::string& path, Mistakes& mistakes) {
  const int64_t most = bias ? RowParams::kMaxWidth : GemmParams::kMaxColumns;
  if (columns <= most) return true;
  const std::string place = join_path(path, "heads");
  mistakes.check(
      place, Status(Code::kInvalidConfig,
                    fmt::format("{} is {}, so the projection has {} columns u, v, q and k; allowed: at most {}{}",
                                place, heads, columns, most, bias ? " with uvqk_bias" : "")));
  return false;
}

namespace {

// Columns v, q and k of the rows of `matrix`.
ProgramValues columns(const StuWidths& widths, const std::string& matrix, const std::string& prefix) {
  return {{prefix + "v", {matrix, widths.first_v()}},
          {prefix + "q", {matrix, widths.first_q()}},
          {prefix + "k", {matrix, widths.first_k()}}};
}

}  // namespace

std::optional<StuInputSteps> StuInputSteps::make(const HstuAttentionParams& attention, const StuParams& stu,
                                                 const StuInputParams& input, const std::string& path,
                                                 Mistakes& mistakes) {
  StuInputSteps steps(attention, input);
  steps.width_ = stu.width;
  const int64_t columns = steps.widths_.uvqk();
  if (!check_projection_columns(attention.heads, columns, input.uvqk_bias, path, mistakes)) return std::nullopt;
  const auto spec = [&](const Json& json) { return parse_op_spec(json, path, mistakes); };
  const std::string dtype(to_string(attention.dtype));
  Json norm = {{"op", stu.norm}, {"width", stu.width}, {"dtype", dtype}, {"weight_dtype", to_string(stu.weight_dtype)}};
  steps.norm_ = spec(norm);
  norm["residual"] = true;
  steps.norm_of_residual_ = spec(norm);
  const auto product = [&](std::string_view op, int64_t k, int64_t n) {
    return product_of(stu, op, k, n, attention.dtype);
  };
  Json projection = product("addmm", stu.width, columns), dgrad = product("addmm", columns, stu.width);
  projection["input"] = input.uvqk_bias ? "vector" : "none";
  dgrad["transpose_mat2"] = true;
  steps.projection_ = spec(projection);
  steps.projection_dgrad_ = spec(dgrad);
  steps.projection_wgrad_ = spec(product("addmm_wgrad", stu.width, columns));
  if (input.uvqk_bias)
    steps.bias_ = spec({{"op", "bias_add"}, {"width", columns}, {"dtype", dtype}, {"weight_dtype", dtype}});
  steps.silu_ = spec({{"op", "silu"}, {"width", steps.widths_.v}, {"dtype", dtype}});
  steps.attention_ = std::make_shared<HstuAttentionSpec>(attention);
  for (const OpSpecPtr& made : {steps.norm_, steps.norm_of_residual_, steps.projection_, steps.projection_dgrad_,
                                steps.projection_wgrad_, input.uvqk_bias ? steps.bias_ : steps.norm_, steps.silu_}) {
    if (made == nullptr) return std::nullopt;
  }
  return steps;
}

void StuInputSteps::add_norm(ProgramBuilder& program) const {
  ProgramValues operands = input_norm_operands();
  operands.emplace("out", ProgramValue{"normed_x", -1, "x, normalised"});
  program.step(norm_, Direction::kForward, operands);
}

void StuInputSteps::add_projection(ProgramBuilder& program) const {
  program.step(projection_, Direction::kForward,
               {{"mat1", {"normed_x"}},
                {"mat2", {"uvqk_weight", -1, "weights of u, v, q and k"}},
                {"input", {"uvqk_bias", -1, "added to each row of u, v, q and k"}},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", {"uvqk"}}});
}

void StuInputSteps::project(ProgramBuilder& program, bool kept) const {
  if (!kept || input_.recompute_normed_x) program.temporary("normed_x", dtype_, width_);
  if (kept && !input_.recompute_uvqk) {
    program.matrix(ArgumentRole::kOutput, "uvqk", dtype_, widths_.uvqk(), "seq_offsets",
                   "u before its silu, v, q and k, for backward");
  } else {
    program.temporary("uvqk", dtype_, widths_.uvqk());
  }
  add_norm(program);
  add_projection(program);
}

void StuInputSteps::activate(ProgramBuilder& program, const ProgramValue& u) const {
  program.step(silu_, Direction::kForward, {{"x", {"uvqk", 0}}, {"out", u}});
}

void StuInputSteps::activate_backward(ProgramBuilder& program, const ProgramValue& du) const {
  program.step(silu_, Direction::kBackward, {{"x", {"uvqk", 0}}, {"dout", du}, {"dx", {"duvqk", 0}}});
}

void StuInputSteps::attend(ProgramBuilder& program, const ProgramValue& attn) const {
  ProgramValues operands = columns(widths_, "uvqk", "");
  operands.emplace("out", attn);
  program.step(attention_, Direction::kForward, operands);
}

void StuInputSteps::project_again(ProgramBuilder& program) const {
  if (input_.recompute_normed_x) {
    program.temporary("normed_x", dtype_, width_);
    add_norm(program);
  }
  if (input_.recompute_uvqk) {
    program.temporary("uvqk", dtype_, widths_.uvqk());
    add_projection(program);
  } else {
    program.matrix(ArgumentRole::kInput, "uvqk", dtype_, widths_.uvqk(), "seq_offsets",
                   "u before its silu, v, q and k, as forward gave them");
  }
  program.temporary("duvqk", dtype_, widths_.uvqk());
}

void StuInputSteps::attend_backward(ProgramBuilder& program, const ProgramValue& dattn) const {
  ProgramValues operands = columns(widths_, "uvqk", "");
  operands.merge(columns(widths_, "duvqk", "d"));
  operands.emplace("dout", dattn);
  program.step(attention_, Direction::kBackward, operands);
}

void StuInputSteps::project_backward(ProgramBuilder& program, const std::optional<ProgramValue>& dresidual) const {
  program.temporary("dnormed_x", dtype_, width_);
  program.step(
      projection_dgrad_, Direction::kForward,
      {{"mat1", {"duvqk"}}, {"mat2", {"uvqk_weight"}}, {"alpha", ProgramValue::number(1)}, {"out", {"dnormed_x"}}});
  program.step(projection_wgrad_, Direction::kForward,
               {{"mat1", {"normed_x"}},
                {"dout", {"duvqk"}},
                {"alpha", ProgramValue::number(1)},
                {"out", {"duvqk_weight", -1, "gradient of uvqk_weight, summed over all rows"}}});
  if (bias_ != nullptr) {
    program.step(bias_, Direction::kBackward,
                 {{"dout", {"duvqk"}},
                  {"beta", ProgramValue::number(1)},
                  {"dbias", {"duvqk_bias", -1, "gradient of uvqk_bias, summed over all rows"}}});
  }
  ProgramValues operands = input_norm_operands();
  operands.insert({{"dout", {"dnormed_x"}},
                   {"dweight", {"dinput_norm_weight", -1, "gradient of input_norm_weight, summed over all rows"}},
                   {"dbias", {"dinput_norm_bias", -1, "gradient of input_norm_bias, summed over all rows"}}});
  if (dresidual) operands.emplace(std::string(kResidualGradient), *dresidual);
  program.step(dresidual ? norm_of_residual_ : norm_, Direction::kBackward, operands);
}

}  // namespace hstujit
