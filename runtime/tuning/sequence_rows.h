// Which arguments hold rows of sequences, and how many of each sequence.
#pragma once

#include <vector>

#include "compiler/spec/op_spec.h"

namespace hstujit {

// Whether the argument's first axis holds the rows of all sequences: a jagged or a uniform one.
bool has_rows(const Argument& argument);

// Whether it is jagged: rows behind the last sequence are nobody's, and a launch may have some.
bool has_jagged_rows(const Argument& argument);

// For an argument that has rows: how many of each sequence.
const std::vector<int64_t>& sequence_rows(const Argument& argument, const Lengths& lengths);

// The rows of each sequence that begin where the argument's numbers say; null for an argument that is no such offsets.
const std::vector<int64_t>* rows_between(const Argument& offsets, const Lengths& lengths);

}  // namespace hstujit
