// How much a tuning record may hold, so that parse_record takes its text: findings, bytes and values of JSON.
#pragma once

#include <cstddef>

#include "autotune_cache/records/tuning_record.h"

namespace hstujit {

// Leaves out of a merge's record what does not fit, and returns how many findings. Those of `newer` stay before the
// older ones, and of these the times that decide on the winner first, then the rejections that last, then the times on
// other workloads; in each list the last ones, which are the newest. The times of the winner and of the heuristic
// stay before all. Where not even the names and texts beside the findings fit, the environment is that of `newer`.
size_t leave_out_what_does_not_fit(TuningRecord& merged, const TuningRecord& newer);

}  // namespace hstujit
