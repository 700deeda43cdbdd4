// Which config a problem gets: the tuning database's winner for its bucket, else the winner of the nearest device that
// has one, else the heuristic's.
#pragma once

#include <string>
#include <vector>

#include "autotune_cache/tuning_record.h"
#include "compiler/plan/search_space.h"
#include "runtime/engine.h"
#include "runtime/problem_bucket.h"

namespace hstujit {

struct KernelChoice {
  KernelConfig config;
  bool tuned = false;   // on this device
  std::string nearest;  // untuned: the device whose winner it is; empty for the heuristic's
  std::string why;      // one sentence: for explain and the log
};

// The instance's alpha is no part of it, nor of a workload's name: it is a launch argument that scales scores and
// changes neither the code nor the work, so a winner serves every value.
TuningKey tuning_key(const OpSpec& spec, Direction direction, const DeviceSpec& device, const ProblemBucket& bucket,
                     const Restriction& restriction = {});

// The keys whose winners serve a look-up, in the order in which they are looked up: its own, then that without a
// restriction. The winner of all kernels is that of the deterministic ones, too, where it is one of them.
std::vector<TuningKey> serving_keys(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                    const ProblemBucket& bucket, const Restriction& restriction);

// The size that heuristics see: of small batches one sequence as long as the bucket. It follows from the bucket alone,
// so that prewarm on one machine and prepare on another choose the same kernel.
ProblemSize heuristic_size(const ProblemBucket& bucket);

// kUnsupported when no template can do this on the device. A tuned config that this build or the restriction rejects
// counts as untuned.
Result<KernelChoice> choose_kernel(Engine& engine, const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                   const ProblemBucket& bucket, const Restriction& restriction = {});

}  // namespace hstujit
