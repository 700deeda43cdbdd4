// Prints the wgmma instruction wrappers of the exact shapes a kernel uses.
#pragma once

#include <string>

#include "compiler/spec/types.h"

namespace hstujit::sm90 {

enum class OperandA { kShared, kRegisters };

// A struct `name` with one function, issue(accumulators, a, b descriptor, accumulate): m64 x `n` x k16, fp32
// accumulators. `transpose_b`: B is stored with its N dimension contiguous.
std::string print_wgmma(const std::string& name, DataType type, int n, OperandA a, bool transpose_b);

}  // namespace hstujit::sm90
