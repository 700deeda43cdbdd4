#include "compiler/spec/operators/hstu_compute_uqvk/spec.h"

#include <fmt/format.h>

#include "compiler/spec/mistakes.h"
#include "compiler/spec/operators/stu_layer/input_steps.h"
#include "compiler/spec/read_params.h"
#include "compiler/spec/row_spec.h"
#include "compiler/spec/step_json.h"

namespace hstujit {

namespace {

// Columns of the projection: the first ones, which have silu, and the others.
struct Part {
  int64_t first = 0, count = 0;
  OpSpecPtr dgrad, wgrad;
};

class UqvkSteps {
 public:
  static std::optional<UqvkSteps> make(const HstuComputeUqvkParams& params, const std::string& path,
                                       Mistakes& mistakes);

  Program forward() const;
  Program backward() const;

 private:
  explicit UqvkSteps(const HstuComputeUqvkParams& params)
      : params_(params), widths_(params.heads, params.attn_dim, params.hidden_dim, params.dtype) {
    const int64_t activated = params.silu_uvqk ? widths_.uvqk() : widths_.v;
    activated_ = {0, activated, nullptr, nullptr};
    rest_ = {activated, widths_.uvqk() - activated, nullptr, nullptr};
  }

  static ProgramBuilder builder();
  void add_norm(ProgramBuilder& program) const;
  void add_gradients(ProgramBuilder& program, const Part& part, const ProgramValue& dout,
                     const ProgramValues& dgrad) const;

  HstuComputeUqvkParams params_;
  StuWidths widths_;
  OpSpecPtr norm_, projection_, projection_again_, silu_;
  Part activated_, rest_;
};

std::optional<UqvkSteps> UqvkSteps::make(const HstuComputeUqvkParams& params, const std::string& path,
                                         Mistakes& mistakes) {
  UqvkSteps steps(params);
  const int64_t activated = steps.activated_.count, columns = steps.widths_.uvqk();
  if (!check_projection_columns(params.heads, columns, path, mistakes)) return std::nullopt;
  if (params.training && activated > RowParams::kMaxWidth) {
    refuse_heads(params.heads,
                 fmt::format("{} {} columns", params.silu_uvqk ? "u, v, q and k have" : "u has", activated),
                 fmt::format("at most {} with training", RowParams::kMaxWidth), path, mistakes);
    return std::nullopt;
  }
  bool whole = true;
  const auto spec = [&](const Json& json) {
    OpSpecPtr made = parse_op_spec(json, path, mistakes);
    whole = whole && made != nullptr;
    return made;
  };
  const std::string dtype(to_string(params.dtype));
  // Steps of some columns are told how these are aligned; whole rows are as they are.
  const int64_t alignment = activated == columns ? RowParams().alignment : steps.widths_.alignment;
  const auto product = [&](std::string_view op, int64_t k, int64_t n) {
    return product_of(params, op, k, n, params.dtype, params.precision, alignment);
  };
  steps.norm_ = spec(step_json(
      params.norm, {{"width", params.width}, {"dtype", dtype}, {"weight_dtype", to_string(params.weight_dtype)}}));
  Json projection = product_of(params, "addmm", params.width, columns, params.dtype, params.precision),
       again = product("addmm", params.width, activated);
  projection["input"] = again["input"] = params.uvqk_bias ? "vector" : "none";
  projection["silu_columns"] = activated;
  steps.projection_ = spec(projection);
  if (params.training) {
    steps.projection_again_ = spec(again);
    steps.silu_ = spec(step_json("silu", {{"width", activated}, {"dtype", dtype}, {"alignment", alignment}}));
    for (Part* const part : {&steps.activated_, &steps.rest_}) {
      if (part->count == 0) continue;
      Json dgrad = product("addmm", part->count, params.width);
      dgrad["transpose_mat2"] = true;
      if (part == &steps.rest_) dgrad["input"] = "matrix";
      part->dgrad = spec(dgrad);
      Json wgrad = product("addmm_wgrad", params.width, part->count);
      wgrad["bias"] = params.uvqk_bias;
      part->wgrad = spec(wgrad);
    }
  }
  if (!whole) return std::nullopt;
  return steps;
}

ProgramBuilder UqvkSteps::builder() {
  ProgramBuilder program;
  program.inputs({"x", "input_norm_weight", "input_norm_bias", "uvqk_weight", "uvqk_bias", "normed_x", "duvqk", "eps"});
  return program;
}

void UqvkSteps::add_norm(ProgramBuilder& program) const {
  ProgramValues operands = input_norm_operands();
  operands.emplace("out", ProgramValue{"normed_x", -1, "x, normalised"});
  program.step(norm_, Direction::kForward, operands);
}

Program UqvkSteps::forward() const {
  ProgramBuilder program = builder();
  if (!params_.training || params_.recompute_normed_x) program.temporary("normed_x", params_.dtype, params_.width);
  add_norm(program);
  program.step(projection_, Direction::kForward,
               {{"mat1", {"normed_x"}},
                {"mat2", {"uvqk_weight", -1, "weights of u, v, q and k"}},
                {"input", {"uvqk_bias", -1, "added to each row of u, v, q and k"}},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", {"uvqk", -1, params_.silu_uvqk ? "silu(u, v, q and k)" : "silu(u), v, q and k"}}});
  return program.finish();
}

// Adds the gradients of some columns, whose gradient is `dout`: those of the weights, and their part in the gradient of
// normed_x.
void UqvkSteps::add_gradients(ProgramBuilder& program, const Part& part, const ProgramValue& dout,
                              const ProgramValues& dgrad) const {
  ProgramValues operands = {{"mat1", dout}, {"mat2", {"uvqk_weight", part.first}}, {"alpha", ProgramValue::number(1)}};
  operands.insert(dgrad.begin(), dgrad.end());
  program.step(part.dgrad, Direction::kForward, operands);
  program.step(part.wgrad, Direction::kForward,
               {{"mat1", {"normed_x"}},
                {"dout", dout},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", {"duvqk_weight", part.first}},
                {"dbias", {"duvqk_bias", part.first}}});
}

// Computes the columns before their silu again, which takes no longer than writing and reading them would.
Program UqvkSteps::backward() const {
  const Dimension rows = Dimension::of(std::string(kSequenceAxis));
  const auto constant = [](int64_t size) { return Dimension::constant(size); };
  const int64_t columns = widths_.uvqk();
  ProgramBuilder program = builder();
  program.tensor(ArgumentRole::kInput, "duvqk", params_.dtype, {rows, constant(columns)}, "gradient of uvqk");
  program.tensor(ArgumentRole::kInput, "uvqk_weight", params_.dtype, {constant(params_.width), constant(columns)},
                 "weights of u, v, q and k");
  program.tensor(ArgumentRole::kOutput, "duvqk_weight", params_.dtype, {constant(params_.width), constant(columns)},
                 "gradient of uvqk_weight, summed over all rows");
  if (params_.uvqk_bias) {
    program.tensor(ArgumentRole::kInput, "uvqk_bias", params_.dtype, {constant(columns)},
                   "added to each row of u, v, q and k");
    program.tensor(ArgumentRole::kOutput, "duvqk_bias", params_.dtype, {constant(columns)},
                   "gradient of uvqk_bias, summed over all rows");
  }
  const bool is_all = rest_.count == 0;
  const ProgramValue dnormed_x{"dnormed_x"}, of_activated{is_all ? "dnormed_x" : "dnormed_x_of_u"};
  for (const char* const name : {"u", "du"}) program.temporary(name, params_.dtype, activated_.count);
  if (!is_all) program.temporary(of_activated.name, params_.dtype, params_.width);
  program.temporary(dnormed_x.name, params_.dtype, params_.width);
  if (params_.recompute_normed_x) {
    program.temporary("normed_x", params_.dtype, params_.width);
    add_norm(program);
  }
  program.step(projection_again_, Direction::kForward,
               {{"mat1", {"normed_x"}},
                {"mat2", {"uvqk_weight", 0}},
                {"input", {"uvqk_bias", 0}},
                {"alpha", ProgramValue::number(1)},
                {"beta", ProgramValue::number(1)},
                {"out", {"u"}}});
  program.step(silu_, Direction::kBackward, {{"x", {"u"}}, {"dout", {"duvqk", 0}}, {"dx", {"du"}}});
  add_gradients(program, activated_, {"du"}, {{"out", of_activated}});
  if (!is_all) {
    add_gradients(program, rest_, {"duvqk", rest_.first},
                  {{"input", of_activated}, {"beta", ProgramValue::number(1)}, {"out", dnormed_x}});
  }
  ProgramValues operands = input_norm_operands();
  operands.insert({{"dout", dnormed_x},
                   {"dweight", {"dinput_norm_weight", -1, "gradient of input_norm_weight, summed over all rows"}},
                   {"dbias", {"dinput_norm_bias", -1, "gradient of input_norm_bias, summed over all rows"}}});
  program.step(norm_, Direction::kBackward, operands);
  return program.finish();
}

}  // namespace

OpSpecPtr parse_hstu_compute_uqvk(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto params = read_params<HstuComputeUqvkParams>(json, path, mistakes);
  if (params && params->dtype != DataType::kFp32) params->precision = MatmulPrecision::kTf32;
  if (!params || !check_weight_dtype(params->weight_dtype, params->dtype, path, mistakes)) return nullptr;
  const auto steps = UqvkSteps::make(*params, path, mistakes);
  if (!steps) return nullptr;
  std::optional<Program> backward;
  if (params->training) backward = steps->backward();
  return std::make_shared<HstuComputeUqvkSpec>(*params, steps->forward(), std::move(backward));
}

Json schema_hstu_compute_uqvk() { return fields_schema<HstuComputeUqvkParams>(); }

Json HstuComputeUqvkSpec::to_json() const { return operator_json(op(), params_); }

}  // namespace hstujit
