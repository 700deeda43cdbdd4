// The search space of one (spec, direction, device): what can run, in the order the cost model expects it to be fast.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/plan/skeleton.h"

namespace hstujit {

// Requirements of a caller besides the right answer.
struct Restriction {
  bool deterministic = false;  // Skeleton::deterministic
};

struct Candidate {
  KernelConfig config;
  double estimate_ms = 0;
};

struct RejectedCandidate {
  KernelConfig config;
  std::vector<Rejection> reasons;
};

struct SearchSpace {
  std::vector<Candidate> candidates;  // fastest estimate first; ties keep the skeleton's order
  std::vector<RejectedCandidate> rejected;
};

// Why a config must not be chosen there; empty when it may. Whoever chooses one asks this: the search space for all of
// its configs, and whoever has one from elsewhere for that.
std::vector<Rejection> rejections(const Skeleton& skeleton, const OpSpec& spec, const KernelConfig& config,
                                  const DeviceSpec& device, const Restriction& restriction);

// By reason, how many candidates it rules out. One that has several counts under each, once.
std::map<std::string, int> count_reasons(const std::vector<RejectedCandidate>& rejected);

SearchSpace search_space(const OpSpec& spec, Direction direction, const DeviceSpec& device, const ProblemSize& size,
                         const Restriction& restriction = {});

// The config to use untuned: the first candidate. kUnsupported, with the commonest rejections, when there is none.
Result<KernelConfig> heuristic_config(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                      const ProblemSize& size, const Restriction& restriction = {});

}  // namespace hstujit
