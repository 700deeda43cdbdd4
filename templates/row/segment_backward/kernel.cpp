// Host side of kernel.cuh.
#include <fmt/format.h>

#include <algorithm>

#include "templates/row/cost.h"
#include "templates/row/operands.h"
#include "templates/row/resources.h"
#include "templates/row/runs.h"
#include "templates/row/skeleton.h"

namespace hstujit {

namespace {

struct RowSegmentBackward {
  using Spec = RowSpec;
  using Config = RowConfig;
  static constexpr std::string_view kName = "row/segment_backward";
  static constexpr Direction kDirection = Direction::kBackward;

  static bool serves(const Spec& spec) {
    const auto sums = spec.interface(kDirection).outputs_of(RowOperandKind::kTableSum);
    return sums.size() == 1 && row::finds_in_order(sums);
  }
  static std::vector<Config> space(const Spec& spec) { return row::space(spec, kDirection); }
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
    if (!waits(config)) return {{"schedule", "rows are gone through in order, and wait in shared memory"}};
    return row::reject(spec, kDirection, config, device);
  }
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
    const row::Resources resources(spec, kDirection, config);
    const int64_t width = spec.interface(kDirection).width, blocks = device.sm_count * config.blocks_per_sm;
    LaunchPlan plan;
    plan.kernel_name =
        fmt::format("{}_{}_{}_d{}_t{}_w{}_s{}_b{}_segments", spec.op(), to_string(kDirection), to_string(spec.dtype()),
                    width, config.threads_per_row, config.warps, config.stages, config.blocks_per_sm);
    plan.threads = static_cast<int>(resources.threads);
    plan.resident_blocks = static_cast<int>(config.blocks_per_sm);
    plan.shared_memory = resources.ring_bytes;
    plan.slots = row::operand_slots(spec, kDirection);
    plan.grid = {constant_factor(blocks)};
    row::add_run_regions(blocks, resources.threads / std::max<int64_t>(32, config.threads_per_row), width, plan);
    FollowingKernel finish;
    finish.function = "finish_segments";
    finish.kernel_name = fmt::format("{}_{}", plan.kernel_name, finish.function);
    finish.threads = row::kFinishThreads;
    finish.grid = {constant_factor(row::finish_blocks(blocks, width))};
    plan.following = {finish};
    return plan;
  }
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize&) {
    return row::estimate_segment_sums_ms(spec, config, device);
  }
  static Constants constants(const Spec& spec, const Config& config) {
    return row::constants(spec, kDirection, config);
  }
  static std::string instruction_wrappers(const Spec& spec, const Config& config) {
    return row::instruction_wrappers(spec, kDirection, config);
  }

 private:
  static bool waits(const Config& config) {
    return config.schedule == "persistent" && config.stages > row::kRegisterStages;
  }
};

}  // namespace

const Skeleton& row_segment_backward_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<RowSegmentBackward>;
  return skeleton;
}

const SkeletonSource& row_segment_backward_source() {
  static const TypedSource<RowSegmentBackward> source;
  return source;
}

}  // namespace hstujit
