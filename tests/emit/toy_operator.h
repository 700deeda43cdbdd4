// An operator without IR, complete enough to be emitted: spec, template and host side of a small normalisation. What
// the emitter says of templates, and launches of several kernels, are tested on it.
#pragma once

#include "compiler/plan/skeleton.h"
#include "compiler/support/json.h"
#include "templates/embedded.h"

namespace hstujit {

class ToySpec final : public OpSpec {
 public:
  explicit ToySpec(nlohmann::ordered_json parameters = {{"op", "toy"}, {"width", 64}})
      : parameters_(std::move(parameters)) {}

  std::string_view op() const override { return "toy"; }
  Family family() const override { return Family::kRow; }
  nlohmann::ordered_json to_json() const override { return parameters_; }
  bool supports(Direction direction) const override { return direction == Direction::kForward; }
  Signature signature(Direction) const override {
    const Dimension rows = Dimension::of("L"), width = Dimension::constant(64);
    const Dimension table{.symbol = "K", .factor = 2, .bias = 1};
    const auto tensor = [](const char* name, ArgumentRole role, DataType type, std::vector<Dimension> shape) {
      Argument argument;
      argument.name = name;
      argument.role = role;
      argument.dtype = type;
      argument.shape = std::move(shape);
      return argument;
    };
    Argument eps;
    eps.name = "eps";
    eps.kind = ArgumentKind::kFloat;
    return {tensor("x", ArgumentRole::kInput, DataType::kFp32, {rows, width}),
            tensor("weight", ArgumentRole::kInput, DataType::kFp32, {table, width}),
            tensor("row_index", ArgumentRole::kInput, DataType::kInt32, {rows}), eps,
            tensor("y", ArgumentRole::kOutput, DataType::kFp32, {rows, width})};
  }
  Work work(Direction, const Lengths&) const override { return {}; }
  double error_bound(Direction) const override { return 1e-5; }

 private:
  nlohmann::ordered_json parameters_;
};

class ToySkeleton : public Skeleton {
 public:
  std::string_view name() const override { return "toy/simple"; }
  Family family() const override { return Family::kRow; }
  Direction direction() const override { return Direction::kForward; }
  std::vector<KernelConfig> space(const OpSpec&) const override { return {{std::string(name()), RowConfig()}}; }
  std::vector<Rejection> reject(const OpSpec&, const KernelConfig&, const DeviceSpec&) const override { return {}; }
  LaunchPlan launch_plan(const OpSpec&, const KernelConfig&, const DeviceSpec&) const override {
    using Kind = ParamSlot::Kind;
    const auto slot = [](const char* name, Kind kind, int argument, const char* type) {
      ParamSlot result;
      result.name = name;
      result.kind = kind;
      result.argument = argument;
      result.type = type;
      return result;
    };
    LaunchPlan plan;
    plan.kernel_name = "toy_simple";
    plan.threads = 64;
    plan.slots = {slot("x", Kind::kPointer, 0, "const float*"), slot("weight", Kind::kPointer, 1, "const float*"),
                  slot("y", Kind::kPointer, 4, "float*"), slot("eps", Kind::kFloat, 3, "")};
    GridFactor rows;
    rows.source = GridFactor::Source::kSize;
    plan.grid = {rows};
    return plan;
  }
  double estimate(const OpSpec&, const KernelConfig&, const DeviceSpec&, const ProblemSize&) const override {
    return 1;
  }
  bool deterministic(const KernelConfig&) const override { return true; }
};

// Two kernels of one launch: the first adds rows to sums in a workspace that must be 0 before, the second writes them.
class AddRowsSkeleton final : public ToySkeleton {
 public:
  std::string_view name() const override { return "toy/add_rows"; }
  LaunchPlan launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const override {
    LaunchPlan plan = ToySkeleton::launch_plan(spec, config, device);
    plan.kernel_name = "add_rows";
    ParamSlot sums;
    sums.name = "sums";
    sums.kind = ParamSlot::Kind::kWorkspace;
    sums.type = "float*";
    ParamSlot rows;
    rows.name = "rows";
    rows.kind = ParamSlot::Kind::kSize;
    plan.slots.insert(plan.slots.end(), {sums, rows});
    GridFactor bytes_of_row;
    bytes_of_row.constant = 64 * 4;
    plan.workspace.regions = {{{plan.grid[0], bytes_of_row}, true}};
    FollowingKernel write;
    write.kernel_name = "add_rows_write";
    write.function = "write_sums";
    write.threads = 32;
    write.grid = plan.grid;
    write.grid[0].divisor = 2;
    plan.following = {write};
    return plan;
  }
};

// The build's templates and the operator's own.
inline std::vector<EmbeddedTemplate> toy_templates() {
  std::vector<EmbeddedTemplate> templates = embedded_templates();
  templates.push_back({"toy/simple/kernel.cuh", R"cuda(#include "common/regions.cuh"
template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  const float* row = params.x + static_cast<i64>(blockIdx.x) * Spec::kWidth;
  float sum = 0, squares = 0;
  for (int i = 0; i < Spec::kWidth; ++i) {
    sum += row[i];
    squares += row[i] * row[i];
  }
  const float mean = sum / Spec::kWidth;
  const float scale = rsqrtf(squares / Spec::kWidth - mean * mean + params.eps);
  for (int i = threadIdx.x; i < Spec::kWidth; i += blockDim.x)
    params.y[static_cast<i64>(blockIdx.x) * Spec::kWidth + i] = (row[i] - mean) * scale * params.weight[i];
}
)cuda"});
  templates.push_back({"toy/add_rows/kernel.cuh", R"cuda(#include "common/regions.cuh"
template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  const i64 element = static_cast<i64>(blockIdx.x) * Spec::kWidth + threadIdx.x;
  params.sums[element] += params.x[element];
}
// A block writes two rows.
template <class Spec, class Config, class Params>
__device__ void write_sums(const Params& params) {
  for (int i = threadIdx.x; i < 2 * Spec::kWidth; i += 32) {
    const i64 element = static_cast<i64>(blockIdx.x) * 2 * Spec::kWidth + i;
    if (element < params.rows * Spec::kWidth) params.y[element] = params.sums[element];
  }
}
)cuda"});
  return templates;
}

inline nlohmann::ordered_json toy_schema() {
  return {{"properties", {{"width", {{"type", "integer"}}}, {"eps", {{"type", "number"}}}}}};
}

}  // namespace hstujit
