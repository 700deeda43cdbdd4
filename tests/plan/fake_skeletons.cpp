// A table of skeletons for the tests: three forward tilings of which the largest never fits, and one that is always
// ruled out. The fastest that fits adds partial sums in a workspace atomically, and converts the sums in a second
// kernel.
#include <fmt/format.h>

#include "compiler/plan/skeleton.h"

namespace hstujit {
namespace {

class FakeSkeleton : public Skeleton {
 public:
  FakeSkeleton(std::string_view name, bool usable) : name_(name), usable_(usable) {}
  std::string_view name() const override { return name_; }
  Family family() const override { return Family::kAttention; }
  Direction direction() const override { return Direction::kForward; }

  std::vector<KernelConfig> space(const OpSpec&) const override {
    std::vector<KernelConfig> configs;
    for (const int64_t rows : {64, 128, 256}) {
      KernelConfig config{std::string(name_), AttentionConfig{.block_m = rows}};
      configs.push_back(config);
      config.attention().schedule = "persistent";
      configs.push_back(config);
    }
    return configs;
  }
  std::vector<Rejection> reject(const OpSpec&, const KernelConfig& config, const DeviceSpec& device) const override {
    if (!usable_ || device.capability() < 90) return {{"device", "needs sm_90a"}};
    if (config.attention().block_m > 128) return {{"shared_memory", "needs too much"}};
    return {};
  }
  bool deterministic(const KernelConfig& config) const override { return config.attention().block_m < 128; }
  LaunchPlan launch_plan(const OpSpec&, const KernelConfig& config, const DeviceSpec&) const override {
    LaunchPlan plan;
    plan.kernel_name = fmt::format("fake_{}", config.attention().block_m);
    plan.threads = 32;
    if (deterministic(config)) return plan;
    GridFactor rows, bytes_of_row;
    rows.source = GridFactor::Source::kSize;  // of the first argument, a tensor
    bytes_of_row.constant = 100;
    plan.workspace.regions = {{{rows, bytes_of_row}, config.attention().schedule == "persistent"}};
    FollowingKernel convert;
    convert.kernel_name = convert.function = "fake_convert";
    convert.threads = 64;
    plan.following = {convert};
    return plan;
  }
  double estimate(const OpSpec&, const KernelConfig& config, const DeviceSpec&, const ProblemSize&) const override {
    return 1.0 / static_cast<double>(config.attention().block_m);
  }

 private:
  std::string_view name_;
  bool usable_;
};

}  // namespace

const std::vector<const Skeleton*>& skeletons() {
  static const FakeSkeleton usable("fake/usable", true), unusable("fake/unusable", false);
  static const std::vector<const Skeleton*> table = {&unusable, &usable};
  return table;
}

}  // namespace hstujit
