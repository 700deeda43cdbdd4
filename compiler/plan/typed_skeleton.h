// TypedSkeleton<Kernel> and TypedSource<Kernel>: the Skeleton and its SkeletonSource over a class that knows its
// family's types, and so casts nothing.
//
// Kernel has
//   using Spec, Config;                       AttentionSpec and AttentionConfig, say
//   static constexpr std::string_view kName;  as Skeleton::name()
//   static constexpr Direction kDirection;
// and, with the meaning of Skeleton's functions of these names,
//   static std::vector<Config> space(const Spec&);
//   static std::vector<Rejection> reject(const Spec&, const Config&, const DeviceSpec&);
//   static LaunchPlan launch_plan(const Spec&, const Config&, const DeviceSpec&);
//   static double estimate(const Spec&, const Config&, const DeviceSpec&, const ProblemSize&);
//   static Constants constants(const Spec&, const Config&);
//   static bool deterministic(const Config&);                                 optional: true for all
//   static bool serves(const Spec&);                                          optional: every operator of the family
//   static constexpr double kEstimateError;                                   optional: Skeleton's
//   static std::string instruction_wrappers(const Spec&, const Config&);      optional: none
#pragma once

#include "compiler/plan/skeleton_source.h"

namespace hstujit {

template <typename Kernel>
class TypedSkeleton final : public Skeleton {
  using Spec = typename Kernel::Spec;
  using Config = typename Kernel::Config;

 public:
  std::string_view name() const override { return Kernel::kName; }
  Family family() const override { return Config::kFamily; }
  Direction direction() const override { return Kernel::kDirection; }

  bool serves(const OpSpec& spec, Direction wanted) const override {
    if (!Skeleton::serves(spec, wanted)) return false;
    if constexpr (requires { Kernel::serves(of(spec)); }) {
      return Kernel::serves(of(spec));
    } else {
      return true;
    }
  }
  std::vector<KernelConfig> space(const OpSpec& spec) const override {
    std::vector<KernelConfig> configs;
    for (Config& config : Kernel::space(of(spec))) configs.push_back({std::string(Kernel::kName), std::move(config)});
    return configs;
  }
  std::vector<Rejection> reject(const OpSpec& spec, const KernelConfig& config,
                                const DeviceSpec& device) const override {
    return Kernel::reject(of(spec), of(config), device);
  }
  bool deterministic([[maybe_unused]] const KernelConfig& config) const override {
    if constexpr (requires { Kernel::deterministic(of(config)); }) {
      return Kernel::deterministic(of(config));
    } else {
      return true;
    }
  }
  LaunchPlan launch_plan(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device) const override {
    LaunchPlan plan = Kernel::launch_plan(of(spec), of(config), device);
    if (config.sanitizer.lanes_arrive) {
      plan.kernel_name += "_lanes";
      for (FollowingKernel& kernel : plan.following) kernel.kernel_name += "_lanes";
    }
    return plan;
  }
  double estimate(const OpSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                  const ProblemSize& size) const override {
    return Kernel::estimate(of(spec), of(config), device, size);
  }
  double estimate_error() const override {
    if constexpr (requires { Kernel::kEstimateError; }) {
      return Kernel::kEstimateError;
    } else {
      return Skeleton::estimate_error();
    }
  }

 private:
  // Casts what the caller has checked: it asked serves(), and a config names its skeleton.
  static const Spec& of(const OpSpec& spec) { return static_cast<const Spec&>(spec); }
  static const Config& of(const KernelConfig& config) { return std::get<Config>(config.tunables); }
};

template <typename Kernel>
class TypedSource final : public SkeletonSource {
  using Spec = typename Kernel::Spec;
  using Config = typename Kernel::Config;

 public:
  std::string_view name() const override { return Kernel::kName; }
  Constants constants(const OpSpec& spec, const KernelConfig& config) const override {
    return Kernel::constants(of(spec), of(config));
  }
  std::string instruction_wrappers([[maybe_unused]] const OpSpec& spec,
                                   [[maybe_unused]] const KernelConfig& config) const override {
    if constexpr (requires { Kernel::instruction_wrappers(of(spec), of(config)); }) {
      return Kernel::instruction_wrappers(of(spec), of(config));
    } else {
      return {};
    }
  }

 private:
  static const Spec& of(const OpSpec& spec) { return static_cast<const Spec&>(spec); }
  static const Config& of(const KernelConfig& config) { return std::get<Config>(config.tunables); }
};

// Fields of a value type that holds numbers and switches, as constants of the source.
template <typename T>
Constants constants_of(const T& values) {
  Constants constants;
  for_each_field(values, [&](const auto& field, const auto& value) {
    constants.emplace_back(std::string(field.name), static_cast<int64_t>(value));
  });
  return constants;
}

}  // namespace hstujit
