// Registers and shared memory of the kernel, and how a CTA shares out a row.
#pragma once

#include "compiler/plan/row_config.h"
#include "compiler/spec/row_spec.h"

namespace hstujit::row_table_backward_atomic {

inline constexpr int64_t kBulkBytes = 16;  // what addresses and sizes of bulk copies are multiples of
inline constexpr int64_t kWarp = 32;
inline constexpr int64_t kMinStages = 2;

struct Resources {
  Resources(const RowSpec& spec, const RowConfig& config);

  int64_t vector = 0;       // elements of an access
  int64_t consumers = 0;    // threads of consumer warps
  int64_t threads = 0;      // those and the producer warp's
  int64_t elements = 0;     // of a row of a thread
  int64_t slots = 0;        // rows of a tile of a thread
  int64_t rows_ahead = 0;   // that a thread has read and not added yet
  int64_t recent_rows = 0;  // of each table but the first, in shared memory
  int64_t stage_bytes = 0;
  int64_t stages = 0;
  int64_t tiles_at_once = 0;  // whose keys are found together
  int64_t shared_bytes = 0;
  int64_t registers = 0;  // of a thread
};

}  // namespace hstujit::row_table_backward_atomic
