// How long a sequence may be.
#pragma once

#include <cstdint>

namespace hstujit {

// The most rows of a sequence or of a problem without sequences, the most sequences, and the largest parameter that
// counts rows. Kernels compute positions with `int`: a sum of seven such numbers and a tile fits, which is more than
// the formulas of masks, their ranges and their words of bits add up.
inline constexpr int64_t kMaxSeqLen = int64_t{1} << 28;

}  // namespace hstujit
