// Host side of kernel.cuh.
#include "templates/row/cost.h"
#include "templates/row/operands.h"
#include "templates/row/skeleton.h"

namespace hstujit {

namespace {

struct RowBackward {
  using Spec = RowSpec;
  using Config = RowConfig;
  static constexpr std::string_view kName = "row/backward";
  static constexpr Direction kDirection = Direction::kBackward;

  static bool serves(const Spec& spec) { return !row::has_table_sums(spec); }
  static std::vector<Config> space(const Spec& spec) { return row::space(spec, kDirection); }
  static std::vector<Rejection> reject(const Spec& spec, const Config& config, const DeviceSpec& device) {
    return row::reject(spec, kDirection, config, device);
  }
  static LaunchPlan launch_plan(const Spec& spec, const Config& config, const DeviceSpec& device) {
    return row::launch_plan(spec, kDirection, config, device);
  }
  static constexpr double kEstimateError = 1.15;
  static double estimate(const Spec& spec, const Config& config, const DeviceSpec& device, const ProblemSize&) {
    return row::estimate_ms(spec, kDirection, config, device);
  }
  static Constants constants(const Spec& spec, const Config& config) {
    return row::constants(spec, kDirection, config);
  }
  static std::string instruction_wrappers(const Spec& spec, const Config& config) {
    return row::instruction_wrappers(spec, kDirection, config);
  }
};

}  // namespace

const Skeleton& row_backward_skeleton() {
  static const auto& skeleton = *new TypedSkeleton<RowBackward>;
  return skeleton;
}

const SkeletonSource& row_backward_source() {
  static const TypedSource<RowBackward> source;
  return source;
}

}  // namespace hstujit
