// The limits of what the command line, the C API and a config's tuning are asked for, in each of them the same.
#pragma once

#include <cstdint>

namespace hstujit {

inline constexpr int64_t kMaxRepeats = 1'000'000;            // launches of one instance that are timed or compared
inline constexpr int64_t kMaxBudgetSeconds = 2'147'483'647;  // of tuning: 68 years
inline constexpr int64_t kMaxRowsOfRun = int64_t{1} << 28;   // rows that a run keeps of a batch: all that one can have

}  // namespace hstujit
