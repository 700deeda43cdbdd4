// Resources that a config of the row kernels takes, and what it keeps in registers: host side of layout.cuh and
// elements.cuh.
#pragma once

#include "compiler/plan/row_config.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/row_spec.h"

namespace hstujit::row {

inline constexpr int64_t kRegisterStages = 2;  // at most: of more, the rows that are under way wait in shared memory

// At least, of a row that stays there until its outputs are written: narrower ones have room in registers.
inline constexpr int64_t kWideThreads = 256;

// Whether CTAs walk rows; else each has one group of them.
inline bool is_persistent(const RowConfig& config) { return config.schedule == "persistent"; }

struct Resources {
  Resources(const RowSpec& spec, Direction direction, const RowConfig& config);

  int64_t threads = 0;        // of a CTA
  int64_t rows = 0;           // of a CTA at a time
  int64_t vector = 0;         // elements of an access
  int64_t vectors = 0;        // of a row
  int64_t chunks = 0;         // of a row: vectors of a thread
  int64_t parts = 0;          // of a row: those that a thread has sums and statistics of, apart
  int64_t row_words = 0;      // registers for a thread's share of a row, all inputs
  int64_t vector_words = 0;   // the same of the inputs that all rows share, as fp32: they are converted once
  int64_t sum_words = 0;      // of column sums, or of a row of a table's sums
  int64_t rows_ahead = 0;     // rows that are loaded while one is added to a table's sums
  int64_t register_cap = 0;   // of a thread, at the config's CTAs per multiprocessor
  bool hold_row = false;      // a row stays in registers from its first use to the last
  bool hold_vectors = false;  // and so do the vectors, from row to row
  int64_t registers_needed = 0;
  int64_t registers_taken = 0;  // by a CTA of a grid, where there are more
  int64_t ring_bytes = 0;       // of shared memory, where rows wait there: with more than two stages

  // CTAs of a grid at a time on a multiprocessor: more than it is compiled for where it needs few registers.
  int64_t resident(const RowConfig& config, const DeviceSpec& device) const;
};

}  // namespace hstujit::row
