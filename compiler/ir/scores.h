// Scores as IR: expressions (compiler/spec/operators/hstu_attention/own_score.h), and what tests build themselves.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "compiler/expression/expression.h"
#include "compiler/ir/ops.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"

namespace hstujit {

// Arguments of the score region of hstu.attention. All but x and the scalars are indices.
struct ScoreArguments {
  mlir::Value x;                               // the raw dot product
  mlir::Value row, col, n, t;                  // as of the mask
  mlir::Value head;                            // of q
  int64_t heads = 1;                           // how many there are
  std::map<std::string, mlir::Value> scalars;  // of the launch, by name
  std::map<std::string, Operand> operands;     // that the score may read, by name

  // The operand's element at `position`, fp32, or i64 of integers: of a row, the position in the sequence; of a table
  // the entry; of a head, `head`; of a scalar, 0 (hstu.read). `position` is an index, or i64.
  mlir::Value read(Ops& ops, const std::string& operand, mlir::Value position) const;
};

using ScoreBuilder = std::function<mlir::Value(Ops& ops, const ScoreArguments& arguments)>;

// The expression's value at alpha * x, for an instance with so many heads. It is 0 at pairs that are not of the
// sequence where it might not be finite there.
mlir::Value build_score(Ops& ops, const Expression& score, int64_t heads, const ScoreArguments& arguments);

// The same of a mask that reads operands, an expression of row, column, n and t.
mlir::Value build_condition(Ops& ops, const Expression& mask, const ScoreArguments& arguments);

}  // namespace hstujit
