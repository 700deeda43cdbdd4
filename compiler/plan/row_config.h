// Parameters of the row family's skeletons that the tuner varies.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/spec/family.h"
#include "compiler/spec/fields.h"

namespace hstujit {

struct RowConfig {
  static constexpr Family kFamily = Family::kRow;
  static constexpr int64_t kMaxWarps = 32;   // of a CTA of 1024 threads
  static constexpr int64_t kMaxStages = 8;   // the row that is computed and those that are on their way
  static constexpr int64_t kMaxBlocks = 32;  // CTAs resident on a multiprocessor

  int64_t threads_per_row = 32;     // a power of two; the others of the CTA have rows of their own
  int64_t warps = 4;                // of a CTA
  int64_t stages = 2;               // rows of a thread that are computed or on their way, from 3 on in shared memory
  int64_t blocks_per_sm = 1;        // resident CTAs the kernel is compiled for
  std::string activation = "mufu";  // how transcendental functions are computed: "mufu", "accurate"
  // "persistent": as many CTAs as are resident walk the rows; "grid": a CTA for each group of rows.
  std::string schedule = "persistent";

  bool operator==(const RowConfig&) const = default;

  static constexpr auto fields() {
    using C = RowConfig;
    return std::make_tuple(field("threads_per_row", &C::threads_per_row, "threads of a row", 1, 32 * kMaxWarps),
                           field("warps", &C::warps, "warps of a CTA", 1, kMaxWarps),
                           field("stages", &C::stages, "rows that are computed and loaded", 1, kMaxStages),
                           field("blocks_per_sm", &C::blocks_per_sm, "resident CTAs", 1, kMaxBlocks),
                           field("activation", &C::activation, "arithmetic of functions").one_of("mufu accurate"),
                           field("schedule", &C::schedule, "how rows are given to CTAs").one_of("persistent grid"));
  }
};

}  // namespace hstujit
