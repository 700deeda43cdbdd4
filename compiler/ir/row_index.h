// Functions by which builders of the row family write IR where rows belong to sequences: the index of hstu.row, which
// finds for the row that is gone through its rows of other tensors.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "compiler/ir/ops.h"
#include "compiler/spec/signature.h"

namespace hstujit {

class RowIndex {
 public:
  using Value = mlir::Value;

  // Over `block`, which takes (sequence, position).
  RowIndex(mlir::MLIRContext& context, mlir::Block& block);

  // Arithmetic of integers and real numbers of the row.
  Ops& ops() { return ops_; }

  Value sequence() const { return block_.getArgument(0); }
  // Position of the row among those of its sequence.
  Value position() const { return block_.getArgument(1); }

  Value element(std::string_view tensor, Value index);
  Value extent(std::string_view operand);
  Value integer(std::string_view argument);
  Value real(std::string_view argument);

  // Where the sequence begins on a jagged or a uniform axis, and how many rows it has there.
  Value first_row(const Dimension& axis);
  Value rows(const Dimension& axis);
  // A row of the axis by its position in the sequence, or none where the condition does not hold.
  Value row_at(const Dimension& axis, Value position, Value condition);
  // That no row is found.
  Value none() { return ops_.integer(-1); }
  // The nearest of the rows that the operand's tensor has.
  Value clamped(Value row, std::string_view operand);

  // Sets the row that the index finds for an operand.
  void find(std::string_view operand, Value row) { found_[std::string(operand)] = row; }
  const std::map<std::string, Value, std::less<>>& found() const { return found_; }

 private:
  mlir::Block& block_;
  mlir::OpBuilder builder_;
  Ops ops_;
  std::map<std::string, Value, std::less<>> found_;
};

}  // namespace hstujit
