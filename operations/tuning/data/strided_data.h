// Tensors whose rows do not lie one right behind the other: slices of wider ones, as q, k, v are of a uvqk matrix, and
// rows that end before the next multiple of the argument's alignment.
//
// Gaps hold poison: NaN for a kernel that reads them, and a trace of one that writes them.
#pragma once

#include "operations/tuning/data/problem_data.h"

namespace hstujit {

// Whether an argument has strides of its own.
bool is_strided(const ProblemData& problem, size_t argument);

// Aligns rows of a problem with contiguous tensors: those whose strides are not multiples of their alignment get rows
// of the next width that is one.
void align_rows(ProblemData& problem);

// The same problem with gaps after the innermost rows of every tensor (..., D), after all that each other axis counts,
// and before the first element, as small as the alignment allows. `problem` comes from make_problem_data.
ProblemData spread(const ProblemData& problem);

// How many elements an image has room for, gaps included, after align_rows and after spread.
double aligned_elements(const Argument& argument, const std::vector<int64_t>& shape);
double spread_elements(const Argument& argument, const std::vector<int64_t>& shape);

// The image of one argument, packed. kCheckFailed when a gap was written.
Result<std::vector<std::byte>> gather(const ProblemData& problem, size_t argument, const std::vector<std::byte>& image);

}  // namespace hstujit
