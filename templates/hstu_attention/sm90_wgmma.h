// Prints the wgmma instruction wrappers of the exact shapes a kernel uses.
#pragma once

#include <string>

#include "compiler/spec/types.h"

namespace hstujit::sm90 {

// kSharedTransposed: stored with its M dimension contiguous.
enum class OperandA { kShared, kSharedTransposed, kRegisters };

// A struct `name` with begin(accumulators, a, b descriptor), D = A B, and issue(..., accumulate), D = A B + D: m64 x
// `n` x k16, fp32 accumulators. begin does not read the accumulators, not even as the compiler sees it: what is in them
// may be the result of divergent code, before which the compiler would otherwise put an order that serialises all
// products (C7520). `transpose_b`: B is stored with its N dimension contiguous.
std::string print_wgmma(const std::string& name, DataType type, int n, OperandA a, bool transpose_b);

}  // namespace hstujit::sm90
