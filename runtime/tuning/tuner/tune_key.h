// Tuning one key on a GPU of this process.
#pragma once

#include "compiler/spec/config.h"
#include "runtime/dispatch/problem_bucket.h"
#include "runtime/engine/engine.h"
#include "runtime/tuning/tuner/tuner.h"

namespace hstujit {

// Times on the instance's lengths at the bucket's max_seq_len (tuning_lengths of runtime/dispatch/problem_bucket.h).
Result<TuneReport> tune_on_device(Engine& engine, const Instance& instance, Direction direction, int ordinal,
                                  const DeviceSpec& device, const ProblemBucket& bucket, const Restriction& restriction,
                                  const TunerOptions& options);

// For the policy "tune": the same with a small budget, because somebody waits for a launch, and only when no usable
// winner is known. What keeps it from tuning, such as memory that is used up, is logged and no failure: the key stays
// untuned. kCheckFailed: the heuristic's kernel is wrong.
Status tune_on_miss(Engine& engine, const Instance& instance, Direction direction, int ordinal,
                    const DeviceSpec& device, const ProblemBucket& bucket, const Restriction& restriction);

}  // namespace hstujit
