#include "templates/row/runs.h"

#include "compiler/support/integers.h"

namespace hstujit::row {

namespace {

constexpr int64_t kFinishColumns = 32;  // of a CTA
constexpr int64_t kEndsBytes = 12;      // of a RunEnds

void add_region(const char* name, const char* type, int64_t bytes, LaunchPlan& plan) {
  add_workspace_region(name, type, {{constant_factor(bytes)}, false}, plan);
}

}  // namespace

int64_t finish_blocks(int64_t blocks, int64_t width) { return blocks * ceil_div(width, kFinishColumns); }

void add_run_regions(int64_t blocks, int64_t parts, int64_t width, LaunchPlan& plan) {
  const int64_t sums = 2 * width * static_cast<int64_t>(sizeof(float));  // a head and a tail
  add_region("group_sums", "float*", blocks * parts * sums, plan);
  add_region("cta_sums", "float*", blocks * sums, plan);
  add_region("cta_ends", "u32*", blocks * kEndsBytes, plan);
  add_region("cta_count", "int*", static_cast<int64_t>(sizeof(int32_t)), plan);
}

}  // namespace hstujit::row
