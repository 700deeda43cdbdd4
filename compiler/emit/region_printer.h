// Region functions as CUDA: straight-line func.func over arith and math, printed as a person would write them.
//
// index is int. A value that is used once is written where it is used, so that one formula is one expression. What a
// score knows besides x it reads where it uses it: the pair from a function that it is given, scalars of the launch
// from `struct Params`, which stands before the functions.
#pragma once

#include <string>

#include "compiler/support/status.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hstujit {

// Which functions compute transcendentals: kMufu prints fast_tanh, fast_exp, ... of templates/common/math.cuh,
// kAccurate CUDA's tanhf, expf, ....
enum class Activation { kMufu, kAccurate };

// "mufu" or "accurate"; kInvalidArgument for anything else.
Result<Activation> parse_activation(std::string_view text);

// kUnsupported with the operation's name when it cannot be written in CUDA. Of the operations in `precise` kMufu prints
// precise_tanh and precise_rsqrt of templates/common/precise.cuh, and the others as kAccurate does; and of an rsqrt in
// it kAccurate prints precise_rsqrt.
Result<std::string> print_region(mlir::func::FuncOp function, Activation activation,
                                 const llvm::DenseSet<mlir::Operation*>& precise = {});

// The index of rows of sequences (kRowIndex): its integers have 64 bits, it reads tensors of integers and arguments of
// the launch, and computes functions as exactly as CUDA does.
Result<std::string> print_row_index(mlir::func::FuncOp function);

}  // namespace hstujit
