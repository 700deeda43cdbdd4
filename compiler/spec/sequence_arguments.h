// Arguments that operators on rows of sequences share. `axis` is the one whose rows they are about (Argument::axis).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/spec/signature.h"

namespace hstujit {

// (B+1): where the rows of each sequence begin.
Argument offsets_argument(std::string name, DataType dtype, std::string_view axis,
                          std::string_view doc = "first row of each sequence, then the number of rows");
// (B): some of the rows of each sequence.
Argument counts_argument(std::string name, DataType dtype, std::string_view axis, std::string_view doc);

// A number of the launch: of any value, an integer from 0 to `max`, and the most rows that a sequence has.
Argument scalar_argument(std::string name, ArgumentKind kind, std::string_view doc);
Argument integer_argument(std::string name, std::string_view doc, int64_t max);
Argument max_rows_argument(std::string name, std::string_view axis, std::string_view doc);
Argument max_seq_len_argument();

}  // namespace hstujit
