// Which config a problem gets: what is forced upon the process or frozen, else the tuning database's winner for its
// bucket or what a bundle says, else what another key lends (choice_look_up.h), else the cost model's estimate.
#pragma once

#include <string>
#include <vector>

#include "autotune_cache/store/tuning_database.h"
#include "compiler/plan/search_space.h"
#include "runtime/dispatch/problem_bucket.h"
#include "runtime/engine/engine.h"

namespace hstujit {

struct KernelChoice {
  KernelConfig config;
  ChoiceSource source = ChoiceSource::kHeuristic;
  bool tuned = false;                   // on this device, or frozen: nothing is left to be timed
  std::string nearest;                  // whose winner it is, where that is of another device
  std::vector<PassedOver> passed_over;  // kHeuristic: better estimates whose kernels are known to be bad
  bool exported = false;                // a bundle says so
  bool remembered = false;              // kHeuristic: kernels of the estimates were looked at when it was made
  std::string not_taken;                // kHeuristic: what the bucket's other batches have, and why it is not the one
  std::string why;                      // one sentence: for explain and the log

  // {"tuned", "from"}, and where they apply "nearest_device" and "passed_over": as reports have it.
  void write(nlohmann::ordered_json& row) const;
};

// The instance's alpha is no part of it, nor of a workload's name: it is a launch argument that scales scores and
// changes neither the code nor the work, so a winner serves every value.
TuningKey tuning_key(const OpSpec& spec, Direction direction, const DeviceSpec& device, const ProblemBucket& bucket,
                     const Restriction& restriction = {});

// The keys whose winners decide a look-up, in the order in which they are looked up: its own, then that without a
// restriction. The winner of all kernels is that of the deterministic ones, too, where it is one of them.
std::vector<TuningKey> serving_keys(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                    const ProblemBucket& bucket, const Restriction& restriction);

// The size that heuristics see: of small batches one sequence as long as the bucket, of short sequences so many that
// lists of tiles are not sorted, with lengths of a power law. It follows from the bucket alone, so that prewarm on one
// machine and prepare on another choose the same kernel.
ProblemSize heuristic_size(const ProblemBucket& bucket);

// Why a config, of a record or a caller, cannot be used; empty when it can.
std::string config_refusal(const OpSpec& spec, Direction direction, const DeviceSpec& device,
                           const Restriction& restriction, const KernelConfig& config);

// kUnsupported when no template can do this on the device. A tuned config that this build or the restriction rejects
// counts as untuned.
Result<KernelChoice> choose_kernel(Engine& engine, const OpSpec& spec, Direction direction, const DeviceSpec& device,
                                   const ProblemBucket& bucket, const Restriction& restriction = {},
                                   Keep keep = Keep::kFound);

// Notes the choice for later look-ups and for bundles (TuningDatabase::note_choice); one that a bundle has made is
// noted there already, and ends what this machine had noted before. One of HSTUJIT_OVERRIDE is not noted.
void note_choice(Engine& engine, const OpSpec& spec, Direction direction, const TuningKey& key,
                 const KernelChoice& choice);

}  // namespace hstujit
