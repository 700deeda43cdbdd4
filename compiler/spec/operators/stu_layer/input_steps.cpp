#include "compiler/spec/operators/stu_layer/input_steps.h"

#include <fmt/format.h>

#include "compiler/spec/mistakes.h"
#include "compiler/spec/operators/hstu_attention/spec.h"

namespace hstujit {

ProgramValues input_norm_operands(const StuNames& names) {
  return {{"weight", names.weight("input_norm_weight", "factor of each column, of the norm of x")},
          {"bias", names.weight("input_norm_bias", "added to each column, of the norm of x")}};
}

bool check_projection_columns(int64_t heads, int64_t columns, const std::string& path, Mistakes& mistakes) {
  if (columns <= GemmParams::kMaxColumns) return true;
  refuse_heads(heads, fmt::format("the projection has {} columns u, v, q and k", columns),
               fmt::format("at most {}", GemmParams::kMaxColumns), path, mistakes);
  return false;
}

namespace {

constexpr std::string_view kWeightsDoc = "weights of u, v, q and k", kBiasDoc = "added to each row of u, v, q and k";

// Whether backward of attention may go through the heads in groups: each one's kernel gives all that it gives.
bool check_groups(const HstuAttentionParams& attention, int64_t groups, const std::string& path, Mistakes& mistakes) {
  if (groups == 1) return true;
  const std::string place = join_path(path, "backward_head_groups");
  const auto refuse = [&](std::string_view allowed) {
    mistakes.check(place, Status(Code::kInvalidConfig, fmt::format("{} is {}; allowed: {}", place, groups, allowed)));
    return false;
  };
  if (attention.heads % groups != 0) return refuse(fmt::format("divisors of heads, which are {}", attention.heads));
  if (attention.rab_heads > 0) return refuse("1 with rab_heads");
  return attention.attn_scale == "none" ? true : refuse("1 with attn_scale");
}

// v, q and k of a group of heads, columns of u, v, q and k of all heads.
ProgramValues columns_of_group(const StuWidths& widths, int64_t group, int64_t groups, const StuMatrix& uvqk,
                               const std::string& prefix) {
  const int64_t v = widths.v / groups, qk = widths.qk / groups;
  return {{prefix + "v", uvqk.columns(widths.first_v() + group * v)},
          {prefix + "q", uvqk.columns(widths.first_q() + group * qk)},
          {prefix + "k", uvqk.columns(widths.first_k() + group * qk)}};
}

}  // namespace

std::optional<StuInputSteps> StuInputSteps::make(const HstuAttentionParams& attention, const StuParams& stu,
                                                 const StuInputParams& input, const std::string& path,
                                                 Mistakes& mistakes, const StuMemoryParams& memory) {
  StuInputSteps steps(attention, input, memory);
  steps.width_ = stu.width;
  const StuWidths& widths = steps.widths_;
  const int64_t columns = widths.uvqk(), groups = memory.backward_head_groups;
  if (!check_projection_columns(attention.heads, columns, path, mistakes)) return std::nullopt;
  if (!check_groups(attention, groups, path, mistakes)) return std::nullopt;
  bool whole = true;
  const auto spec = [&](const Json& json) {
    OpSpecPtr made = parse_op_spec(json, path, mistakes);
    whole = whole && made != nullptr;
    return made;
  };
  const std::string dtype(to_string(attention.dtype));
  Json norm = {{"op", stu.norm}, {"width", stu.width}, {"dtype", dtype}, {"weight_dtype", to_string(stu.weight_dtype)}};
  steps.norm_ = spec(norm);
  norm["residual"] = true;
  steps.norm_of_residual_ = spec(norm);
  const auto product = [&](std::string_view op, int64_t k, int64_t n) {
    return product_of(stu, op, k, n, attention.dtype, attention.precision);
  };
  const auto projection = [&](int64_t n) {
    Json json = product("addmm", stu.width, n);
    json["input"] = input.uvqk_bias ? "vector" : "none";
    return spec(json);
  };
  Json dgrad = product("addmm", columns, stu.width);
  dgrad["transpose_mat2"] = true;
  steps.projection_ = projection(columns);
  steps.projection_dgrad_ = spec(dgrad);
  Json wgrad = product("addmm_wgrad", stu.width, columns);
  wgrad["bias"] = input.uvqk_bias;
  steps.projection_wgrad_ = spec(wgrad);
  steps.silu_ = spec({{"op", "silu"}, {"width", widths.v}, {"dtype", dtype}});
  steps.attention_ = std::make_shared<HstuAttentionSpec>(attention);
  if (!whole) return std::nullopt;

  steps.projection_of_u_ = {projection(widths.v), 0, 0};
  HstuAttentionParams of_group = attention;
  of_group.heads /= groups;
  steps.attention_of_group_ = std::make_shared<HstuAttentionSpec>(of_group);
  if (groups == 1) {
    steps.projections_of_groups_ = {{{projection(columns - widths.v), widths.first_v(), 0}}};
    return steps;
  }
  // The columns of a group are no neighbours: three products, whose results are.
  const int64_t v = widths.v / groups, qk = widths.qk / groups;
  const OpSpecPtr of_v = projection(v), of_qk = projection(qk);
  for (int64_t group = 0; group < groups; ++group) {
    steps.projections_of_groups_.push_back({{of_v, widths.first_v() + group * v, 0},
                                            {of_qk, widths.first_q() + group * qk, v},
                                            {of_qk, widths.first_k() + group * qk, v + qk}});
  }
  return steps;
}

StuMatrix StuInputSteps::normed_x(bool kept, const StuNames& names) const {
  return kept && !input_.recompute_normed_x ? names.kept("normed_x", width_) : names.between("normed_x");
}

StuMatrix StuInputSteps::uvqk(bool kept, const StuNames& names) const {
  return kept && !input_.recompute_uvqk ? names.kept("uvqk", widths_.uvqk()) : names.between("uvqk");
}

void StuInputSteps::keep(ProgramBuilder& program, ArgumentRole role, int64_t layers) const {
  const bool taken = role == ArgumentRole::kInput;
  if (!input_.recompute_uvqk) {
    program.matrix(
        role, "uvqk", dtype_, layers * widths_.uvqk(), "seq_offsets",
        taken ? "u before its silu, v, q and k, as forward gave them" : "u before its silu, v, q and k, for backward");
  }
  if (!input_.recompute_normed_x) {
    program.matrix(role, "normed_x", dtype_, layers * width_, "seq_offsets",
                   taken ? "x, normalised, as forward gave it" : "x, normalised, for backward");
  }
}

void StuInputSteps::take_weights(ProgramBuilder& program, int64_t layers) const {
  std::vector<Dimension> bias = {Dimension::constant(widths_.uvqk())};
  if (layers > 0) bias.insert(bias.begin(), Dimension::constant(layers));
  std::vector<Dimension> weight = bias;
  weight.insert(weight.end() - 1, Dimension::constant(width_));
  program.tensor(ArgumentRole::kInput, "uvqk_weight", dtype_, weight, kWeightsDoc);
  if (input_.uvqk_bias && input_.recompute_uvqk)
    program.tensor(ArgumentRole::kInput, "uvqk_bias", dtype_, bias, kBiasDoc);
}

void StuInputSteps::add_norm(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& out,
                             const StuNames& names) const {
  ProgramValues operands = input_norm_operands(names);
  operands.insert({{"x", x}, {"out", out}});
  program.step(norm_, Direction::kForward, operands);
}

void StuInputSteps::add_projection(ProgramBuilder& program, const ProgramValue& normed_x, const ProgramValue& out,
                                   const StuNames& names) const {
  program.step(projection_, Direction::kForward,
               {{"mat1", normed_x},
                {"mat2", names.weight("uvqk_weight", kWeightsDoc)},
                {"input", names.weight("uvqk_bias", kBiasDoc)},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", out}});
}

void StuInputSteps::add_columns(ProgramBuilder& program, const Projection& projection, const ProgramValue& normed_x,
                                const StuMatrix& out, const StuNames& names) const {
  program.step(projection.spec, Direction::kForward,
               {{"mat1", normed_x},
                {"mat2", names.weight("uvqk_weight", {}, projection.first)},
                {"input", names.weight("uvqk_bias", {}, projection.first)},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", out.columns(projection.first_to)}});
}

void StuInputSteps::project(ProgramBuilder& program, bool kept, const ProgramValue& x, const StuNames& names) const {
  const StuMatrix normed_x = this->normed_x(kept, names), uvqk = this->uvqk(kept, names);
  if (!kept || input_.recompute_normed_x) program.temporary(normed_x.name, dtype_, width_);
  if (!kept || input_.recompute_uvqk) program.temporary(uvqk.name, dtype_, widths_.uvqk());
  add_norm(program, x, normed_x.all(), names);
  add_projection(program, normed_x.all(), uvqk.all(), names);
}

void StuInputSteps::activate(ProgramBuilder& program, bool kept, const ProgramValue& u) const {
  program.step(silu_, Direction::kForward, {{"x", this->u(kept)}, {"out", u}});
}

void StuInputSteps::activate_backward(ProgramBuilder& program, const ProgramValue& du) const {
  program.step(silu_, Direction::kBackward, {{"x", u_of_backward()}, {"dout", du}, {"dx", duvqk().columns(0)}});
}

void StuInputSteps::attend(ProgramBuilder& program, bool kept, const ProgramValue& attn, const StuNames& names) const {
  ProgramValues operands = columns_of_group(widths_, 0, 1, uvqk(kept, names), "");
  operands.emplace("out", attn);
  program.step(attention_, Direction::kForward, operands);
}

ProgramValue StuInputSteps::normed_x_of_backward(const ProgramValue& dx, const StuNames& names) const {
  return input_.recompute_normed_x ? dx : normed_x(/*kept=*/true, names).all();
}

ProgramValue StuInputSteps::u_of_backward(const StuNames& names) const {
  return input_.recompute_uvqk && !memory_.recompute_attn ? names.between("u").columns(0) : u(/*kept=*/true, names);
}

void StuInputSteps::begin_backward(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& dx,
                                   const StuNames& names) const {
  program.temporary(duvqk(names).name, dtype_, widths_.uvqk());
  if (input_.recompute_normed_x) add_norm(program, x, dx, names);
  if (!input_.recompute_uvqk) return;
  const ProgramValue normed_x = normed_x_of_backward(dx, names);
  if (has_all_again()) {
    const StuMatrix uvqk = this->uvqk(/*kept=*/true, names);
    program.temporary(uvqk.name, dtype_, widths_.uvqk());
    add_projection(program, normed_x, uvqk.all(), names);
  } else {
    program.temporary(names.between("u").name, dtype_, widths_.v);
    add_columns(program, projection_of_u_, normed_x, names.between("u"), names);
  }
}

void StuInputSteps::attend_backward(ProgramBuilder& program, const StuMatrix& dattn, const ProgramValue& dx,
                                    const StuNames& names) const {
  const int64_t groups = memory_.backward_head_groups, v = widths_.v / groups, qk = widths_.qk / groups;
  const bool again = input_.recompute_uvqk && !has_all_again();
  const StuMatrix vqk = names.between("vqk");  // of one group
  if (again) program.temporary(vqk.name, dtype_, v + 2 * qk);
  for (int64_t group = 0; group < groups; ++group) {
    ProgramValues operands = columns_of_group(widths_, group, groups, duvqk(names), "d");
    if (again) {
      for (const Projection& projection : projections_of_groups_[static_cast<size_t>(group)])
        add_columns(program, projection, normed_x_of_backward(dx, names), vqk, names);
      operands.insert({{"v", vqk.columns(0)}, {"q", vqk.columns(v)}, {"k", vqk.columns(v + qk)}});
    } else {
      operands.merge(columns_of_group(widths_, group, groups, uvqk(/*kept=*/true, names), ""));
    }
    operands.emplace("dout", groups == 1 ? dattn.all("gradient of the attention output") : dattn.columns(group * v));
    program.step(attention_of_group_, Direction::kBackward, operands);
  }
}

void StuInputSteps::project_backward(ProgramBuilder& program, const std::optional<ProgramValue>& dresidual,
                                     const ProgramValue& x, const ProgramValue& dx, const StuNames& names) const {
  const ProgramValue dnormed_x = names.between("dnormed_x").all(), duvqk = this->duvqk(names).all();
  program.temporary(dnormed_x.name, dtype_, width_);
  program.step(projection_dgrad_, Direction::kForward,
               {{"mat1", duvqk},
                {"mat2", names.weight("uvqk_weight", kWeightsDoc)},
                {"alpha", ProgramValue::number(1)},
                {"out", dnormed_x}});
  program.step(projection_wgrad_, Direction::kForward,
               {{"mat1", normed_x_of_backward(dx, names)},
                {"dout", duvqk},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", names.weight("duvqk_weight", "gradient of uvqk_weight, summed over all rows")},
                {"dbias", names.weight("duvqk_bias", "gradient of uvqk_bias, summed over all rows")}});
  ProgramValues operands = input_norm_operands(names);
  operands.insert(
      {{"x", x},
       {"dx", dx},
       {"dout", dnormed_x},
       {"dweight", names.weight("dinput_norm_weight", "gradient of input_norm_weight, summed over all rows")},
       {"dbias", names.weight("dinput_norm_bias", "gradient of input_norm_bias, summed over all rows")}});
  if (dresidual) operands.emplace(std::string(kResidualGradient), *dresidual);
  program.step(dresidual ? norm_of_residual_ : norm_, Direction::kBackward, operands);
}

}  // namespace hstujit
