// The same problem with tensors that are slices of wider ones, as q, k, v are of a uvqk matrix.
//
// A row tensor (L, ..., D) gets gaps after its innermost rows, after each row and before its first element. Gaps are as
// small as the argument's alignment allows and hold poison: NaN for a kernel that reads them, and a trace of one that
// writes them.
#pragma once

#include "runtime/tuning/problem_data.h"

namespace hstujit {

// `problem` comes from make_problem_data; its row tensors of rank 2 or more become strided.
ProblemData spread(const ProblemData& problem);

// Output images of a spread problem, packed again, for compare(). kCheckFailed when a gap was written.
Result<std::vector<std::vector<std::byte>>> gather(const ProblemData& spread_problem,
                                                   const std::vector<std::vector<std::byte>>& outputs);

}  // namespace hstujit
