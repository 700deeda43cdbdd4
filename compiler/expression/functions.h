// Functions of real numbers that expressions have beside the operators of integers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hstujit {

enum class Function : uint8_t {
  kNone,
  kReal,    // an integer as a real number; texts do not write it
  kNegate,  // written -a
  kDivide,  // written a / b
  kInt,     // the integer part of a, between -kLargestInt and kLargestInt
  kFloor,
  kExp,
  kLog,
  kLog2,
  kSqrt,
  kPow,
  kSin,
  kCos,
  kTanh,
  kSigmoid,
  kSilu,
  kGelu,
  kRelu,
  kLeakyRelu,
  kHardswish,
};

// Bound of the result of kInt, so that sums and multiples of it fit into 32 bits. NaN becomes the least.
inline constexpr int64_t kLargestInt = int64_t{1} << 20;

struct FunctionInfo {
  Function function = Function::kNone;
  std::string_view name;  // in texts; empty where an operator or nothing writes it
  int operands = 1;
  double instructions = 1;  // of a kernel with approximate functions, about
  bool finite = true;       // for all finite operands that are not huge
};

// Entry i is of the function with number i.
std::span<const FunctionInfo> function_table();
const FunctionInfo& info_of(Function function);
// Null where no function of a text has the name.
const FunctionInfo* find_function(std::string_view name);

}  // namespace hstujit
