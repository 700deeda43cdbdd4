// The functions that hstu.row becomes (cut_rows.cpp), and how they belong together.
//
// A row is gone through in rounds. In each of them `row_summands<r>` gives for every element what is summed over the
// row, and `row_statistics<r>` makes of the sums, once a row, the numbers that later functions take: the row's
// statistics. Last, `row_outputs` gives the elements of the outputs. All of them take single values in fp32: arguments
// are named after inputs, random numbers and statistics, and those that a function does not use are not among them.
//
// Where rows are those of sequences, `row_index` gives the rows of the operands that it finds, in integers of 64 bits.
//
// Where rows have groups, a round's sums are over the elements of a group, and statistics are those of a group.
#pragma once

#include <string>
#include <vector>

#include "compiler/support/status.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace hstujit {

struct RowRound {
  mlir::func::FuncOp summands;    // (inputs, statistics) -> what each of the round's sums adds up
  mlir::func::FuncOp statistics;  // (the sums, inputs that are scalars, statistics) -> further statistics
};

// Random numbers, one for each element (hstu.random).
struct RowRandom {
  std::string name;
  std::string seed, offset;        // inputs
  int64_t columns = 0, first = 0;  // the number is that of element row * columns + first + column
};

struct RowFunctions {
  std::vector<RowRound> rounds;
  mlir::func::FuncOp outputs;  // (inputs, statistics) -> an element of each output
  std::vector<RowRandom> randoms;
  mlir::func::FuncOp index;  // (sequence, position) -> a row of each operand that is found; null where there are none

  // Names of all statistics, in the order of the rounds.
  std::vector<std::string> statistics() const;
  // Number of sums of the round with the most.
  unsigned max_sums() const;
};

std::string row_summands_name(unsigned round);
std::string row_statistics_name(unsigned round);
inline constexpr llvm::StringLiteral kRowOutputs = "row_outputs";
inline constexpr llvm::StringLiteral kRowIndex = "row_index";
// The name of a sum among the arguments of row_statistics<r>, which begin with the sums.
std::string row_sum_name(unsigned index);

// Operations that results of these names depend on, in all of the functions: outputs, and through statistics what they
// follow from.
llvm::DenseSet<mlir::Operation*> operations_of(const RowFunctions& functions, const std::vector<std::string>& outputs);

// Says that an argument of a function is a random number.
void set_row_random(mlir::func::FuncOp function, unsigned argument, const RowRandom& random);

// Finds the functions in a module after the passes; none in a module without hstu.row.
RowFunctions find_row_functions(mlir::ModuleOp module);

}  // namespace hstujit
