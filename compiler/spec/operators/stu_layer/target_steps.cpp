#include "compiler/spec/operators/stu_layer/target_steps.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/spec/operators/delta_hstu_attention/spec.h"
#include "compiler/spec/operators/stu_layer/layer_steps.h"
#include "compiler/spec/operators/take_last_rows/last_rows.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/spec/step_json.h"

namespace hstujit {

std::optional<StuTargetSteps> StuTargetSteps::make(const StuLayerParams& params, const std::string& path,
                                                   Mistakes& mistakes) {
  StuInputParams projected_again = params;  // u and q, of few rows, even where v and k are kept
  projected_again.recompute_uvqk = true;
  const auto input = StuInputSteps::make(params, params, projected_again, path, mistakes, params, params.silu_uvqk);
  const auto output = StuOutputSteps::make(StuGate::of_layer(params), params, params, path, mistakes);
  if (!input || !output) return std::nullopt;
  StuTargetSteps steps(params, *input, *output);
  steps.vk_.kept = steps.is_kept(params.recompute_uvqk);
  bool whole = true;
  const auto spec = [&](const Json& json) {
    OpSpecPtr made = parse_op_spec(json, path, mistakes);
    whole = whole && made != nullptr;
    return made;
  };
  const std::string dtype(to_string(params.dtype));
  const StuWidths& widths = input->widths();
  const auto product = [&](std::string_view op, int64_t k, int64_t n) {
    return product_of(params, op, k, n, params.dtype, params.precision, widths.alignment);
  };
  const auto part = [&](int64_t first_weight, int64_t first, int64_t columns, bool adds) {
    Json projection = product("addmm", params.width, columns), dgrad = product("addmm", columns, params.width),
         wgrad = product("addmm_wgrad", params.width, columns);
    projection["input"] = params.uvqk_bias ? "vector" : "none";
    Json activated = projection;
    activated["silu_columns"] = columns;
    dgrad["transpose_mat2"] = true;
    if (adds) dgrad["input"] = "matrix";
    wgrad["bias"] = params.uvqk_bias;
    return Part{first_weight, first,      columns, spec(projection), params.silu_uvqk ? spec(activated) : nullptr,
                spec(dgrad),  spec(wgrad)};
  };
  steps.uq_.first = part(0, 0, widths.v, /*adds=*/false);
  steps.uq_.second = part(widths.first_q(), widths.v, widths.qk, /*adds=*/true);
  steps.vk_.first = part(widths.first_v(), 0, widths.v, /*adds=*/true);
  steps.vk_.second = part(widths.first_k(), widths.v, widths.qk, /*adds=*/true);
  if (params.silu_uvqk) {
    steps.uq_.silu = steps.vk_.silu = spec(step_json("silu", {{"width", widths.v + widths.qk}, {"dtype", dtype}}));
  }
  for (const auto& [op, made] :
       {std::pair("take_last_rows", &steps.take_), std::pair("place_last_rows", &steps.place_)}) {
    *made = spec(
        step_json(op, {{"width", params.width}, {"dtype", dtype}, {"offsets_dtype", to_string(params.offsets_dtype)}}));
  }
  if (!whole) return std::nullopt;
  DeltaHstuAttentionParams delta;
  static_cast<HstuAttentionParams&>(delta) = attention_of<HstuAttentionParams>(params);
  delta.jagged_queries = true;
  steps.attention_ = std::make_shared<DeltaHstuAttentionSpec>(delta);
  return steps;
}

void StuTargetSteps::declare(ProgramBuilder& program, ArgumentRole kept) const {
  program.inputs(StuLayerSteps::inputs());
  input_.take_weights(program);
  if (!params_.training) return;
  if (!params_.recompute_attn) {
    program.tensor(
        kept, "attn", params_.dtype, {last_rows(), Dimension::constant(output_.v_columns())},
        kept == ArgumentRole::kInput ? "attention output, as forward gave it" : "attention output, for backward");
  }
  if (vk_.kept) {
    program.matrix(kept, vk_.projection().name, params_.dtype, vk_.columns(), "seq_offsets",
                   kept == ArgumentRole::kInput ? "v and k, as the projection gave them" : "v and k, for backward");
  }
  input_.keep(program, kept);
  output_.keep(program, kept, 1, last_rows());
}

void StuTargetSteps::set_rows(ProgramBuilder& program, bool last) const {
  program.rows(Dimension::of(std::string(last ? kQueryAxis : kSequenceAxis)));
}

StuMatrix StuTargetSteps::project_to(ProgramBuilder& program, const Pair& pair, const ProgramValue& normed_x,
                                     OpSpecPtr Part::* projection) const {
  const StuMatrix result = pair.projection();
  set_rows(program, &pair == &uq_);
  if (!pair.kept) program.temporary(result.name, params_.dtype, pair.columns());
  for (const Part* const part : {&pair.first, &pair.second}) {
    program.step(part->*projection, Direction::kForward,
                 {{"mat1", normed_x},
                  {"mat2", {"uvqk_weight", part->first_weight}},
                  {"input", {"uvqk_bias", part->first_weight}},
                  {"alpha", ProgramValue::number(1)},
                  {"beta", ProgramValue::number(1)},
                  {"out", {result.name, part->first}}});
  }
  return result;
}

StuMatrix StuTargetSteps::project(ProgramBuilder& program, const Pair& pair, const ProgramValue& normed_x) const {
  // Rounds what silu is applied to wherever a whole layer would.
  if (params_.silu_uvqk && !is_kept(params_.recompute_uvqk))
    return project_to(program, pair, normed_x, &Part::silu_of_projection);
  return activate(program, pair, project_to(program, pair, normed_x, &Part::projection));
}

StuMatrix StuTargetSteps::project_again(ProgramBuilder& program, const Pair& pair, const ProgramValue& normed_x) const {
  return activate(program, pair,
                  pair.kept ? pair.projection() : project_to(program, pair, normed_x, &Part::projection));
}

StuMatrix StuTargetSteps::activate(ProgramBuilder& program, const Pair& pair, const StuMatrix& projection) const {
  if (pair.silu == nullptr) return projection;
  const StuMatrix read{std::string("silu_") + pair.name};
  set_rows(program, &pair == &uq_);
  program.temporary(read.name, params_.dtype, pair.columns());
  program.step(pair.silu, Direction::kForward, {{"x", projection.all()}, {"out", read.all()}});
  return read;
}

StuMatrix StuTargetSteps::silu_backward(ProgramBuilder& program, const Pair& pair, const StuMatrix& gradient) const {
  if (pair.silu == nullptr) return gradient;
  const StuMatrix result{std::string("dprojection_") + pair.name};
  set_rows(program, &pair == &uq_);
  program.temporary(result.name, params_.dtype, pair.columns());
  program.step(pair.silu, Direction::kBackward,
               {{"x", pair.projection().all()}, {"dout", gradient.all()}, {"dx", result.all()}});
  return result;
}

void StuTargetSteps::attend(ProgramBuilder& program, const StuMatrix& uq, const StuMatrix& vk,
                            const ProgramValue& attn) const {
  program.step(attention_, Direction::kForward,
               {{"q", uq.columns(uq_.second.first)},
                {"k", vk.columns(vk_.second.first)},
                {"v", vk.columns(vk_.first.first)},
                {"out", attn}});
}

ProgramValue StuTargetSteps::take_last(ProgramBuilder& program, const ProgramValue& rows,
                                       const std::string& name) const {
  set_rows(program, /*last=*/true);
  program.temporary(name, params_.dtype, params_.width);
  program.step(take_, Direction::kForward, {{"values", rows}, {"out", {name}}});
  return {name};
}

ProgramValue StuTargetSteps::place_last(ProgramBuilder& program, const ProgramValue& last,
                                        const std::string& name) const {
  set_rows(program, /*last=*/false);
  program.temporary(name, params_.dtype, params_.width);
  program.step(place_, Direction::kForward, {{"values", last}, {"out", {name}}});
  return {name};
}

ProgramValue StuTargetSteps::project_backward(ProgramBuilder& program, const Pair& pair, const StuMatrix& gradient,
                                              const ProgramValue& normed_x,
                                              const std::optional<ProgramValue>& added) const {
  set_rows(program, &pair == &uq_);
  std::optional<ProgramValue> sum = added;
  for (const Part* const part : {&pair.first, &pair.second}) {
    const ProgramValue dout = gradient.columns(part->first);
    program.step(part->wgrad, Direction::kForward,
                 {{"mat1", normed_x},
                  {"dout", dout},
                  {"alpha", ProgramValue::number(1)},
                  {"beta", ProgramValue::number(1)},
                  {"out", {"duvqk_weight", part->first_weight}},
                  {"dbias", {"duvqk_bias", part->first_weight}}});
    const std::string name = fmt::format("dnormed_{}_{}", pair.name, part == &pair.first ? 1 : 2);
    program.temporary(name, params_.dtype, params_.width);
    ProgramValues operands = {{"mat1", dout},
                              {"mat2", {"uvqk_weight", part->first_weight}},
                              {"alpha", ProgramValue::number(1)},
                              {"out", {name}}};
    if (sum) operands.insert({{"input", *sum}, {"beta", ProgramValue::number(1)}});
    program.step(part->dgrad, Direction::kForward, operands);
    sum = ProgramValue{name};
  }
  return *sum;
}

Program StuTargetSteps::forward() const {
  ProgramBuilder program;
  declare(program, ArgumentRole::kOutput);
  program.tensor(ArgumentRole::kOutput, "out", params_.dtype, {last_rows(), Dimension::constant(params_.width)},
                 "result, of the last rows of each sequence");
  program.outputs({"out"});
  if (!is_kept(params_.recompute_normed_x)) program.temporary("normed_x", params_.dtype, params_.width);
  input_.normalise(program, {"x"}, {"normed_x"});
  const StuMatrix vk = project(program, vk_, {"normed_x"});
  const StuMatrix uq = project(program, uq_, take_last(program, {"normed_x"}, "normed_q"));
  if (!is_kept(params_.recompute_attn)) program.temporary("attn", params_.dtype, output_.v_columns());
  attend(program, uq, vk, {"attn", 0});
  const ProgramValue x = output_.has_residual() ? take_last(program, {"x"}, "x_q") : ProgramValue{"x_q"};
  output_.compute(program, {"attn"}, uq.columns(0), params_.training, {}, x);
  return program.finish();
}

Program StuTargetSteps::backward() const {
  const auto constant = [](int64_t size) { return Dimension::constant(size); };
  const int64_t columns = input_.widths().uvqk();
  ProgramBuilder program;
  declare(program, ArgumentRole::kInput);
  program.outputs(StuLayerSteps::gradients());
  program.tensor(ArgumentRole::kInput, "dout", params_.dtype, {last_rows(), constant(params_.width)},
                 "gradient of the result");
  program.tensor(ArgumentRole::kOutput, "duvqk_weight", params_.dtype, {constant(params_.width), constant(columns)},
                 "gradient of uvqk_weight, summed over all rows");
  if (params_.uvqk_bias) {
    program.tensor(ArgumentRole::kOutput, "duvqk_bias", params_.dtype, {constant(columns)},
                   "gradient of uvqk_bias, summed over all rows");
  }
  // The norm's result lies in dx until that is written, at the end.
  const ProgramValue dx{"dx", -1, "gradient of x"};
  const ProgramValue normed_x = params_.recompute_normed_x ? dx : ProgramValue{"normed_x"};
  if (params_.recompute_normed_x) input_.normalise(program, {"x"}, dx.for_now());
  const StuMatrix vk = project_again(program, vk_, normed_x);
  const ProgramValue normed_q = take_last(program, normed_x, "normed_q");
  const StuMatrix uq = project_again(program, uq_, normed_q);
  if (params_.recompute_attn) {
    program.temporary("attn", params_.dtype, output_.v_columns());
    attend(program, uq, vk, {"attn", 0});
  }
  program.temporary("dattn", params_.dtype, output_.v_columns());
  program.temporary("duq", params_.dtype, uq_.columns());
  output_.compute_backward(program, {"attn"}, uq.columns(0), {"dattn"}, {"duq", 0}, {});
  set_rows(program, /*last=*/false);
  program.temporary("dvk", params_.dtype, vk_.columns());
  program.step(attention_, Direction::kBackward,
               {{"q", uq.columns(uq_.second.first)},
                {"k", vk.columns(vk_.second.first)},
                {"v", vk.columns(vk_.first.first)},
                {"dout", {"dattn", 0}},
                {"dq", {"duq", uq_.second.first}},
                {"dk", {"dvk", vk_.second.first}},
                {"dv", {"dvk", vk_.first.first}}});
  const ProgramValue dnormed_q =
      project_backward(program, uq_, silu_backward(program, uq_, {"duq"}), normed_q, std::nullopt);
  const ProgramValue placed = place_last(program, dnormed_q, "dnormed_of_last");
  const ProgramValue dnormed_x = project_backward(program, vk_, silu_backward(program, vk_, {"dvk"}), normed_x, placed);
  std::optional<ProgramValue> dresidual;
  if (output_.has_residual()) dresidual = place_last(program, {"dout"}, "dresidual_of_last");
  input_.normalise_backward(program, dnormed_x, dresidual);
  return program.finish();
}

}  // namespace hstujit
