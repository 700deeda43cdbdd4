#include "compiler/plan/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hstujit {

namespace {

// "head_dim (12 candidates): ...; shared_memory (3 candidates): ...", commonest first, each with its first sentence.
std::string summarize(const std::vector<RejectedCandidate>& rejected) {
  constexpr size_t kShown = 3;
  struct Group {
    std::string reason, detail;
    int count = 0;
  };
  const std::map<std::string, int> counts = count_reasons(rejected);
  std::vector<Group> groups;
  for (const RejectedCandidate& candidate : rejected) {
    for (const Rejection& rejection : candidate.reasons) {
      const bool known = std::any_of(groups.begin(), groups.end(),
                                     [&](const Group& group) { return group.reason == rejection.reason; });
      if (!known) groups.push_back({rejection.reason, rejection.detail, counts.at(rejection.reason)});
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.count > b.count; });
  std::string text;
  for (size_t index = 0; index < std::min(kShown, groups.size()); ++index) {
    const Group& group = groups[index];
    text += fmt::format("{}{} ({} of {} candidates): {}", index == 0 ? "" : "; ", group.reason, group.count,
                        rejected.size(), group.detail);
  }
  return text;
}

}  // namespace

std::vector<Rejection> rejections(const Skeleton& skeleton, const OpSpec& spec, const KernelConfig& config,
                                  const DeviceSpec& device, const Restriction& restriction) {
  std::vector<Rejection> reasons = skeleton.reject(spec, config, device);
  if (reasons.empty() && restriction.deterministic && !skeleton.deterministic(config)) {
    reasons.push_back({"deterministic", fmt::format("{} gives results that differ in their last bits from run to run, "
                                                    "and deterministic ones are asked for",
                                                    describe(config))});
  }
  return reasons;
}

std::map<std::string, int> count_reasons(const std::vector<RejectedCandidate>& rejected) {
  std::map<std::string, int> counts;
  for (const RejectedCandidate& candidate : rejected) {
    std::set<std::string> reasons;
    for (const Rejection& rejection : candidate.reasons) reasons.insert(rejection.reason);
    for (const std::string& reason : reasons) ++counts[reason];
  }
  return counts;
}

SearchSpace search_space(const OpSpec& spec, Direction direction, const DeviceSpec& device, const ProblemSize& size,
                         const Restriction& restriction) {
  SearchSpace space;
  for (const Skeleton* skeleton : skeletons()) {
    if (!skeleton->serves(spec, direction)) continue;
    for (KernelConfig& config : skeleton->space(spec)) {
      std::vector<Rejection> reasons = rejections(*skeleton, spec, config, device, restriction);
      if (reasons.empty()) {
        const double estimate = skeleton->estimate(spec, config, device, size);
        space.candidates.push_back({std::move(config), estimate});
      } else {
        space.rejected.push_back({std::move(config), std::move(reasons)});
      }
    }
  }
  std::stable_sort(space.candidates.begin(), space.candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.estimate_ms < b.estimate_ms; });
  return space;
}

Result<KernelConfig> heuristic_config(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                      const ProblemSize& size, const Restriction& restriction) {
  const SearchSpace space = search_space(spec, direction, device, size, restriction);
  if (!space.candidates.empty()) return space.candidates.front().config;
  const std::string why = space.rejected.empty() ? "no template implements it"
                                                 : "every candidate is ruled out: " + summarize(space.rejected);
  return Status(Code::kUnsupported, fmt::format("{} {} has no kernel for {} ({}): {}", spec.op(), to_string(direction),
                                                device.name, device.arch, why));
}

}  // namespace hstujit
