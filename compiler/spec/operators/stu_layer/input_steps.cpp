#include "compiler/spec/operators/stu_layer/input_steps.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "compiler/spec/mistakes.h"
#include "compiler/spec/operators/hstu_attention/operands/declarations.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/step_json.h"

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
  if (attention.heads % groups != 0) return refuse(fmt::format("divisors of {}, the heads", attention.heads));
  for (const Operand& operand : operands_of(attention)) {
    if (operand.use != OperandUse::kMask) return refuse(fmt::format("1 with {}", operand.field));
  }
  if (attention.has_softmax() && attention.num_softmax_heads < attention.heads)
    return refuse("1 where some heads have softmax");
  return true;
}

}  // namespace

std::optional<StuInputSteps> StuInputSteps::make(const HstuAttentionParams& params, const StuParams& stu,
                                                 const StuInputParams& input, const std::string& path,
                                                 Mistakes& mistakes, const StuMemoryParams& memory, bool silu_uvqk) {
  const HstuAttentionParams attention = attention_of(params);
  StuInputSteps steps(attention, input, memory, silu_uvqk);
  steps.width_ = stu.width;
  const StuWidths& widths = steps.widths_;
  const int64_t columns = widths.uvqk(), groups = memory.backward_head_groups;
  if (!check_projection_columns(attention.heads, columns, path, mistakes)) return std::nullopt;
  if (!check_groups(attention, groups, path, mistakes)) return std::nullopt;
  if (silu_uvqk && columns > RowParams::kMaxWidth) {
    refuse_heads(attention.heads, fmt::format("the projection has {} columns u, v, q and k", columns),
                 fmt::format("at most {} with silu_uvqk", RowParams::kMaxWidth), path, mistakes);
    return std::nullopt;
  }
  bool whole = true;
  const auto spec = [&](const Json& json) {
    OpSpecPtr made = parse_op_spec(json, path, mistakes);
    whole = whole && made != nullptr;
    return made;
  };
  const std::string dtype(to_string(attention.dtype));
  Json norm =
      step_json(stu.norm, {{"width", stu.width}, {"dtype", dtype}, {"weight_dtype", to_string(stu.weight_dtype)}});
  steps.norm_ = spec(norm);
  norm["residual"] = true;
  steps.norm_of_residual_ = spec(norm);
  // Steps of some columns of u, v, q and k are told how these are aligned; whole rows are as they are.
  const auto alignment_of = [&](int64_t n) { return n == columns ? RowParams().alignment : widths.alignment; };
  const auto product = [&](std::string_view op, int64_t k, int64_t n, int64_t alignment = RowParams().alignment) {
    return product_of(stu, op, k, n, attention.dtype, attention.precision, alignment);
  };
  const auto projection = [&](int64_t n, int64_t silu_columns = 0) {
    Json json = product("addmm", stu.width, n, alignment_of(n));
    json["input"] = input.uvqk_bias ? "vector" : "none";
    json["silu_columns"] = silu_columns;
    return spec(json);
  };
  const auto silu = [&](int64_t width) {
    return spec(step_json("silu", {{"width", width}, {"dtype", dtype}, {"alignment", alignment_of(width)}}));
  };
  Json dgrad = product("addmm", columns, stu.width);
  dgrad["transpose_mat2"] = true;
  steps.projection_ = projection(columns);
  steps.projection_dgrad_ = spec(dgrad);
  Json wgrad = product("addmm_wgrad", stu.width, columns);
  wgrad["bias"] = input.uvqk_bias;
  steps.projection_wgrad_ = spec(wgrad);
  steps.silu_ = silu(silu_uvqk ? columns : widths.v);
  if (silu_uvqk) steps.silu_of_projection_ = projection(columns, columns);
  steps.attention_ = std::make_shared<HstuAttentionSpec>(attention);
  if (!whole) return std::nullopt;

  const auto again = [&](int64_t n) { return silu_uvqk ? silu(n) : projection(n); };
  steps.u_again_ = {again(widths.v), 0};
  HstuAttentionParams of_group = attention;
  of_group.heads /= groups;
  of_group.num_softmax_heads /= groups;
  steps.attention_of_group_ = std::make_shared<HstuAttentionSpec>(of_group);
  of_group.adds_gradients = true;
  make_canonical(of_group);
  steps.adding_attention_ = std::make_shared<HstuAttentionSpec>(of_group);
  if (groups == 1) {
    steps.groups_again_ = {{{again(columns - widths.v), widths.first_v()}}};
    return steps;
  }
  // The columns of a group are no neighbours: three launches.
  const int64_t v = widths.v / groups, qk = widths.qk / groups;
  const OpSpecPtr of_v = again(v), of_qk = again(qk);
  for (int64_t group = 0; group < groups; ++group) {
    steps.groups_again_.push_back({{of_v, widths.first_v() + group * v},
                                   {of_qk, widths.first_q() + group * qk},
                                   {of_qk, widths.first_k() + group * qk}});
  }
  return steps;
}

StuMatrix StuInputSteps::uvqk(bool kept, const StuNames& names) const {
  return keeps_uvqk(kept) ? names.kept("uvqk", widths_.uvqk()) : names.between("uvqk");
}

StuMatrix StuInputSteps::attended(bool kept, const StuNames& names) const {
  return silu_uvqk_ && keeps_uvqk(kept) ? names.between("activated") : uvqk(kept, names);
}

StuMatrix StuInputSteps::dprojection(const StuNames& names) const {
  if (!silu_uvqk_) return duvqk(names);
  return input_.recompute_uvqk ? uvqk(/*kept=*/true, names) : names.between("dprojection");
}

StuColumns StuInputSteps::free_columns(bool kept, const StuNames& names) const {
  if (keeps_uvqk(kept) && !silu_uvqk_) return {};
  return {attended(kept, names), widths_.first_v(), widths_.uvqk() - widths_.first_v()};
}

void StuInputSteps::keep(ProgramBuilder& program, ArgumentRole role, int64_t layers) const {
  const bool taken = role == ArgumentRole::kInput;
  if (!input_.recompute_uvqk) {
    constexpr std::string_view kOfU[] = {"u before its silu, v, q and k, for backward",
                                         "u before its silu, v, q and k, as forward gave them"};
    constexpr std::string_view kOfAll[] = {"u, v, q and k before their silu, for backward",
                                           "u, v, q and k before their silu, as forward gave them"};
    program.matrix(role, "uvqk", dtype_, layers * widths_.uvqk(), "seq_offsets", (silu_uvqk_ ? kOfAll : kOfU)[taken]);
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

void StuInputSteps::normalise(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& out,
                              const StuNames& names) const {
  ProgramValues operands = input_norm_operands(names);
  operands.insert({{"x", x}, {"out", out}});
  program.step(norm_, Direction::kForward, operands);
}

void StuInputSteps::add_projection(ProgramBuilder& program, const OpSpecPtr& projection, const ProgramValue& normed_x,
                                   const ProgramValue& out, const StuNames& names) const {
  program.step(projection, Direction::kForward,
               {{"mat1", normed_x},
                {"mat2", names.weight("uvqk_weight", kWeightsDoc)},
                {"input", names.weight("uvqk_bias", kBiasDoc)},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", out}});
}

void StuInputSteps::add_columns(ProgramBuilder& program, const Columns& columns, const ProgramValue& normed_x,
                                const ProgramValue& out, const StuNames& names) const {
  if (silu_uvqk_) {
    const ProgramValue x = uvqk(/*kept=*/true, names).columns(columns.first);
    program.step(columns.spec, Direction::kForward, {{"x", x}, {"out", out}});
    return;
  }
  program.step(columns.spec, Direction::kForward,
               {{"mat1", normed_x},
                {"mat2", names.weight("uvqk_weight", {}, columns.first)},
                {"input", names.weight("uvqk_bias", {}, columns.first)},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", out}});
}

void StuInputSteps::project(ProgramBuilder& program, bool kept, const std::optional<ProgramValue>& place,
                            const ProgramValue& x, const StuNames& names) const {
  ProgramValue normed_x = this->normed_x(names).all();
  if (!keeps_normed_x(kept)) {
    normed_x = place ? place->for_now() : names.between("normed_x").all();
    if (!place) program.temporary(normed_x.name, dtype_, width_);
  }
  const StuMatrix uvqk = this->uvqk(kept, names);
  const bool apart = keeps_uvqk(kept);  // the derivative of silu asks for the projection
  if (!apart) program.temporary(uvqk.name, dtype_, widths_.uvqk());
  normalise(program, x, normed_x, names);
  add_projection(program, silu_uvqk_ && !apart ? silu_of_projection_ : projection_, normed_x, uvqk.all(), names);
  if (!silu_uvqk_ || !apart) return;
  const StuMatrix attended = this->attended(kept, names);
  program.temporary(attended.name, dtype_, widths_.uvqk());
  program.step(silu_, Direction::kForward, {{"x", uvqk.all()}, {"out", attended.all()}});
}

void StuInputSteps::activate(ProgramBuilder& program, bool kept, const ProgramValue& u) const {
  program.step(silu_, Direction::kForward, {{"x", this->u(kept)}, {"out", u}});
}

void StuInputSteps::activate_backward(ProgramBuilder& program, const ProgramValue& du) const {
  program.step(silu_, Direction::kBackward, {{"x", u_of_backward()}, {"dout", du}, {"dx", duvqk().columns(0)}});
}

void StuInputSteps::attend(ProgramBuilder& program, bool kept, const ProgramValue& attn, const StuNames& names) const {
  const StuMatrix attended = this->attended(kept, names);
  program.step(attention_, Direction::kForward,
               {{"v", attended.columns(widths_.first_v())},
                {"q", attended.columns(widths_.first_q())},
                {"k", attended.columns(widths_.first_k())},
                {"out", attn}});
}

ProgramValue StuInputSteps::normed_x_of_backward(const ProgramValue& dx, const StuNames& names) const {
  return input_.recompute_normed_x ? dx : normed_x(names).all();
}

ProgramValue StuInputSteps::u_of_backward(const StuNames& names) const {
  return has_groups_again() ? duvqk(names).columns(0) : u(/*kept=*/true, names);
}

void StuInputSteps::begin_backward(ProgramBuilder& program, const ProgramValue& x, const ProgramValue& dx,
                                   const StuNames& names, int64_t behind) const {
  program.temporary(duvqk(names).name, dtype_, whole_lines(widths_.uvqk()) + whole_lines(behind));
  // Where uvqk was kept the norm's result is for the gradient of the weights alone, behind a workspace in its place.
  const bool is_read = input_.recompute_uvqk || !has_workspace_in_dx(dx);
  if (input_.recompute_normed_x && is_read) normalise(program, x, dx.for_now(), names);
  const ProgramValue normed_x = normed_x_of_backward(dx, names);
  if (has_all_again()) {
    const StuMatrix uvqk = this->uvqk(/*kept=*/true, names);
    program.temporary(uvqk.name, dtype_, widths_.uvqk());
    add_projection(program, projection_, normed_x, uvqk.all(), names);
  }
  if (has_groups_again()) add_columns(program, u_again_, normed_x, u_of_backward(names), names);
}

StuInputSteps::GroupPlace StuInputSteps::columns_of_group(int64_t group, const StuMatrix& uvqk) const {
  const int64_t v = widths_.v / memory_.backward_head_groups, qk = widths_.qk / memory_.backward_head_groups;
  return {uvqk.columns(widths_.first_v() + group * v), uvqk.columns(widths_.first_q() + group * qk),
          uvqk.columns(widths_.first_k() + group * qk)};
}

StuInputSteps::GroupPlace StuInputSteps::add_group(ProgramBuilder& program, int64_t group, const GroupPlace& place,
                                                   const ProgramValue& dx, const StuNames& names) const {
  if (!has_groups_again()) return columns_of_group(group, uvqk(/*kept=*/true, names));
  const std::array<const ProgramValue*, 3> places = {&place.v, &place.q, &place.k};
  const std::vector<Columns>& columns = groups_again_[static_cast<size_t>(group)];
  for (size_t i = 0; i < columns.size(); ++i)
    add_columns(program, columns[i], normed_x_of_backward(dx, names), *places[i], names);
  return place;
}

void StuInputSteps::attend_again(ProgramBuilder& program, const StuMatrix& attn, const ProgramValue& dx,
                                 const StuNames& names) const {
  const int64_t groups = memory_.backward_head_groups;
  for (int64_t group = 0; group < groups; ++group) {
    // Nothing is in the columns of their gradients yet.
    const GroupPlace vqk = add_group(program, group, columns_of_group(group, duvqk(names)), dx, names);
    program.step(attention_of_group_, Direction::kForward,
                 {{"v", vqk.v}, {"q", vqk.q}, {"k", vqk.k}, {"out", attn.columns(group * widths_.v / groups)}});
  }
}

std::vector<StuInputSteps::GroupPlace> StuInputSteps::place_groups(ProgramBuilder& program, const StuMatrix& dattn,
                                                                   const StuNames& names) const {
  const int64_t groups = memory_.backward_head_groups, v = widths_.v / groups, qk = widths_.qk / groups;
  std::vector<GroupPlace> places;
  if (!has_groups_again()) return std::vector<GroupPlace>(static_cast<size_t>(groups));
  // In the columns that the next group's gradients will be written to.
  for (int64_t group = 1; group < groups; ++group) places.push_back(columns_of_group(group, duvqk(names)));
  // The last one's in those of dattn that the groups before it have read, while there are any; they need not be kept.
  const int64_t read = dattn.name == duvqk(names).name ? widths_.v - v : 0;
  const StuMatrix vqk = names.between("vqk");
  int64_t taken = 0, columns = 0;
  const auto place = [&](int64_t wanted) {
    if (taken + wanted <= read) return dattn.columns(std::exchange(taken, taken + wanted));
    return vqk.columns(std::exchange(columns, columns + wanted));
  };
  places.push_back({place(v), place(qk), place(qk)});
  if (columns > 0) program.temporary(vqk.name, dtype_, columns);
  return places;
}

void StuInputSteps::add_attention_backward(ProgramBuilder& program, int64_t group, const GroupPlace& vqk,
                                           const StuMatrix& dattn, const StuNames& names) const {
  const int64_t groups = memory_.backward_head_groups;
  const GroupPlace gradients = columns_of_group(group, duvqk(names));
  const ProgramValue dout =
      groups == 1 ? dattn.all("gradient of the attention output") : dattn.columns(group * widths_.v / groups);
  ProgramValues tensors = {{"v", vqk.v},        {"q", vqk.q},        {"k", vqk.k},       {"dout", dout},
                           {"dv", gradients.v}, {"dq", gradients.q}, {"dk", gradients.k}};
  // Layers of a stack share operands, whose gradients are then sums over layers.
  for (const Operand& operand : static_cast<const AttentionSpec&>(*attention_).operands())
    tensors.insert({operand.before_name(), {operand.gradient_name()}});
  program.step(names.adds() ? adding_attention_ : attention_of_group_, Direction::kBackward, tensors);
}

bool StuInputSteps::has_workspace_in_dx(const ProgramValue& dx) const {
  const int64_t groups = memory_.backward_head_groups;
  // The workspace of Hopper's kernel has dq in fp32, and little else.
  const int64_t needed = widths_.qk / groups * static_cast<int64_t>(sizeof(float));
  const int64_t room = width_ * static_cast<int64_t>(size_of(dtype_));
  const bool is_whole = dx.first_column < 0 && dx.index < 0;
  return is_whole && dtype_ != DataType::kFp32 && needed < room && (groups > 1 || !input_.recompute_normed_x);
}

void StuInputSteps::attend_backward(ProgramBuilder& program, const StuMatrix& dattn, const ProgramValue& x,
                                    const ProgramValue& dx, const StuNames& names) const {
  const int64_t groups = memory_.backward_head_groups;
  const bool in_dx = has_workspace_in_dx(dx);
  const std::vector<GroupPlace> places = place_groups(program, dattn, names);
  const auto project_group = [&](int64_t group) {
    return add_group(program, group, places[static_cast<size_t>(group)], dx, names);
  };
  const auto attend_group = [&](int64_t group, const GroupPlace& vqk) {
    add_attention_backward(program, group, vqk, dattn, names);
    if (in_dx) program.workspace_in(dx.name);
  };
  const auto normalise_again = [&] {
    if (in_dx && input_.recompute_normed_x) normalise(program, x, dx.for_now(), names);
  };
  // All but the last group have places of their own, so that the norm's result is needed once for them.
  std::vector<GroupPlace> before_last;
  for (int64_t group = 0; group + 1 < groups; ++group) before_last.push_back(project_group(group));
  for (int64_t group = 0; group + 1 < groups; ++group) attend_group(group, before_last[static_cast<size_t>(group)]);
  if (groups > 1 && has_groups_again() && !silu_uvqk_) normalise_again();  // for the last group's projection
  attend_group(groups - 1, project_group(groups - 1));
  normalise_again();
}

void StuInputSteps::project_backward(ProgramBuilder& program, const ProgramValue& dnormed_x,
                                     const std::optional<ProgramValue>& dresidual, const ProgramValue& x,
                                     const ProgramValue& dx, const StuNames& names) const {
  const ProgramValue dprojection = this->dprojection(names).columns(0);
  if (silu_uvqk_) {
    if (!input_.recompute_uvqk) program.temporary(dprojection.name, dtype_, widths_.uvqk());
    program.step(
        silu_, Direction::kBackward,
        {{"x", uvqk(/*kept=*/true, names).columns(0)}, {"dout", duvqk(names).columns(0)}, {"dx", dprojection}});
  }
  program.step(projection_dgrad_, Direction::kForward,
               {{"mat1", dprojection},
                {"mat2", names.weight("uvqk_weight", kWeightsDoc)},
                {"alpha", ProgramValue::number(1)},
                {"out", dnormed_x}});
  program.step(projection_wgrad_, Direction::kForward,
               {{"mat1", normed_x_of_backward(dx, names)},
                {"dout", dprojection},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", names.weight("duvqk_weight", "gradient of uvqk_weight, summed over all rows")},
                {"dbias", names.weight("duvqk_bias", "gradient of uvqk_bias, summed over all rows")}});
  normalise_backward(program, dnormed_x, dresidual, x, dx, names);
}

void StuInputSteps::normalise_backward(ProgramBuilder& program, const ProgramValue& dnormed_x,
                                       const std::optional<ProgramValue>& dresidual, const ProgramValue& x,
                                       const ProgramValue& dx, const StuNames& names) const {
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
