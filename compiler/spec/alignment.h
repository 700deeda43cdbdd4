// Alignment of the rows of tensors: a parameter of operators, which the width of rows bounds.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/spec/mistakes.h"
#include "compiler/spec/types.h"

namespace hstujit {

// Bytes that dense rows of so many elements begin at multiples of: a power of two.
int64_t row_alignment(int64_t elements, DataType dtype);

// Checks that addresses of that alignment are addresses of elements; a mistake of "alignment" where not.
bool check_alignment(int64_t alignment, DataType dtype, const std::string& path, Mistakes& mistakes);

}  // namespace hstujit
