// The search space of one (spec, direction, device): what can run, in the order the cost model expects it to be fast.
#pragma once

#include <vector>

#include "compiler/plan/skeleton.h"

namespace hstujit {

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

SearchSpace search_space(const OpSpec& spec, Direction direction, const DeviceSpec& device, const ProblemSize& size);

// The config to use untuned: the first candidate. kUnsupported, with the commonest rejections, when there is none.
Result<KernelConfig> heuristic_config(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                      const ProblemSize& size);

}  // namespace hstujit
