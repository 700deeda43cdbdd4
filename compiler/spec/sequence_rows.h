// Which arguments hold rows of sequences, and how many of each sequence, or a part for each of them.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/spec/op_spec.h"

namespace hstujit {

// The axis of q's rows where it has only the last ones of each sequence.
inline constexpr std::string_view kQueryAxis = "Lq";

// Whether some tensor's rows are those of sequences: calls have lengths then.
bool has_sequences(const Signature& signature);

// Whether launches say a max_seq_len, which kernels are looked up by.
bool has_max_seq_len(const Signature& signature);

// Whether the argument's first axis holds the rows of all sequences: a jagged or a uniform one, or L of a problem
// without sequences.
bool has_rows(const Argument& argument);

// Whether those rows are cut at sequences, as are those of a jagged or a uniform axis.
bool has_sequence_rows(const Argument& argument);

// Whether it is jagged: rows behind the last sequence are nobody's, and a launch may have some.
bool has_jagged_rows(const Argument& argument);

// Whether rows count that no sequence has: offsets say where the sequences of an axis begin, and some argument has rows
// of it that are not cut at them.
bool every_row_counts(const Signature& signature);

// The axis of lengths that rows are of: a uniform one has as many of each sequence as kQueryAxis.
std::string_view row_axis(const Dimension& dimension);
// For an argument that has rows: the axis that they are of.
std::string_view row_axis(const Argument& argument);
// How many of each sequence.
const std::vector<int64_t>& sequence_rows(const Argument& argument, const Lengths& lengths);

// Whether the argument has a part for each sequence, all of one size whatever its rows: (B, ...) of real numbers.
bool has_parts(const Argument& argument);

// Elements of such a part: constants and max_seq_len are the sizes that it may have.
int64_t part_elements(const Argument& argument, int64_t max_seq_len);

// The rows of each sequence that begin where the argument's numbers say; null for an argument that is no such offsets.
const std::vector<int64_t>* rows_between(const Argument& offsets, const Lengths& lengths);

}  // namespace hstujit
