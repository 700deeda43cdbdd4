#include "compiler/expression/functions.h"

namespace hstujit {

namespace {

constexpr FunctionInfo kFunctions[] = {
    {Function::kNone, "", 0, 0},
    {Function::kReal, "", 1, 1},
    {Function::kNegate, "", 1, 1},
    {Function::kDivide, "", 2, 5, false},
    {Function::kInt, "int", 1, 4},
    {Function::kFloor, "floor", 1, 2},
    {Function::kExp, "exp", 1, 5, false},
    {Function::kLog, "log", 1, 5, false},
    {Function::kLog2, "log2", 1, 4, false},
    {Function::kSqrt, "sqrt", 1, 4, false},
    {Function::kPow, "pow", 2, 40, false},
    {Function::kSin, "sin", 1, 30},
    {Function::kCos, "cos", 1, 30},
    {Function::kTanh, "tanh", 1, 4},
    {Function::kSigmoid, "sigmoid", 1, 6},
    {Function::kSilu, "silu", 1, 6},
    {Function::kGelu, "gelu", 1, 20},
    {Function::kRelu, "relu", 1, 1},
    {Function::kLeakyRelu, "leaky_relu", 2, 3},
    {Function::kHardswish, "hardswish", 1, 5},
};

}  // namespace

std::span<const FunctionInfo> function_table() { return kFunctions; }

const FunctionInfo& info_of(Function function) { return kFunctions[static_cast<size_t>(function)]; }

const FunctionInfo* find_function(std::string_view name) {
  for (const FunctionInfo& info : kFunctions) {
    if (!info.name.empty() && info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace hstujit
