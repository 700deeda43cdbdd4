// Resources of a multiprocessor that a config takes: host side of shared.cuh.
#pragma once

#include "compiler/plan/gemm_config.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit::gemm_sm80 {

inline constexpr int64_t kWarpsM = 2;          // warps that a tile's rows are split over, as in shared.cuh
inline constexpr int64_t kMaxRegisters = 255;  // of a thread

// Whether tiles, warps and stages are shared out evenly.
bool well_formed(const GemmConfig& config);

struct Resources {
  Resources(const GemmSpec& spec, const GemmConfig& config);

  int64_t threads = 0;           // of a CTA
  int64_t shared_bytes = 0;      // of a CTA
  int64_t stage_bytes_of_a = 0;  // of these, a stage of the first factor
  int64_t column_sum_bytes = 0;  // that sums of columns take of such a stage, one of each group of threads
  int64_t registers_needed = 0;  // of a thread, about
  int64_t registers_taken = 0;   // where there are more

  // CTAs at a time on a multiprocessor; 0 where it has no room for one.
  int64_t resident(const DeviceSpec& device) const;
};

}  // namespace hstujit::gemm_sm80
