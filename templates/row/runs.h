// Host side of runs.cuh.
#pragma once

#include <cstdint>

#include "compiler/plan/launch_plan.h"

namespace hstujit::row {

inline constexpr int kFinishThreads = 256;  // of a CTA that finishes runs

// CTAs that finish the runs of so many CTAs.
int64_t finish_blocks(int64_t blocks, int64_t width);
// Regions of what parts leave to one another: `parts` of each of `blocks` CTAs, and then the CTAs.
void add_run_regions(int64_t blocks, int64_t parts, int64_t width, LaunchPlan& plan);

}  // namespace hstujit::row
