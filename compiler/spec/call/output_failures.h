// Sentences about sizes of outputs. What computes the sizes runs in every call and is compiled for speed, these are
// not.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compiler/spec/call/output_sizes.h"

namespace hstujit {

// `value`, of a number, is not from `least` to `most`.
Status number_out_of_bounds(const Argument& argument, int64_t value, int64_t least, int64_t most);
// `value`, of a keyword, is below 0.
Status negative_keyword(const std::string& keyword, int64_t value);
// The rows of the sequences, `all`, are fewer than the rows `apart` of `others`.
Status too_few_rows(std::string_view function, int64_t all, std::span<const SizePart> others, int64_t apart);
// `value`, the last element of offsets, is below 0 or above `most`, the sum of the symbol's parts.
Status offsets_out_of_bounds(const Argument& offsets, int64_t sequences, int64_t value, const SizeSymbol& symbol,
                             int64_t most);
// An output of these sizes has one below 0, or no memory has room for it.
Status no_room(std::string_view function, const Argument& output, std::span<const int64_t> sizes);

}  // namespace hstujit
