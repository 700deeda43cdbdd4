// Functions by which builders of the row family write IR: hstu.row with the operands of a RowSpec, and the body value
// by value.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/build.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/row_index.h"
#include "compiler/spec/row_spec.h"

namespace hstujit {

class RowBuilder {
 public:
  using Value = mlir::Value;

  RowBuilder(mlir::MLIRContext& context, const RowSpec& spec);

  // Elementwise operations over elements, and the arithmetic of numbers of the row.
  Ops& ops() { return ops_; }

  Value input(std::string_view name) const;

  // A number of the row: the sum, the mean of its elements, or where there are groups, of those of each group.
  Value sum(Value elements);
  Value mean(Value elements);
  // A number for each element.
  Value splat(Value number);
  // Elements rounded to that type, which stay in fp32. Gradients are not rounded there.
  Value rounded(Value elements, DataType dtype);
  // A constant for each element.
  Value elements(double value) { return ops_.real(value, elements_); }
  // Elements less their mean over their deviation, and over their root mean square.
  Value layer_norm(Value x, Value eps);
  Value rms_norm(Value x, Value eps);

  // Dropout of the columns of a matrix of `columns` elements a row, from `first` on: an element is 0 where its random
  // number is below the input "dropout_ratio", and is divided by the ratio of those that are kept where it is not. The
  // inputs "seed" and "offset" decide the numbers.
  Value dropout(Value x, int64_t columns, int64_t first);

  // Names a value: what generated source calls it where it is a variable.
  Value named(std::string_view name, Value value) const;

  // Where rows are those of sequences: finds the rows of operands whose rows are not those gone through.
  RowIndex& index() { return *index_; }

  // The body yields these, in the order of the spec's outputs.
  Module finish(const std::vector<Value>& outputs);

 private:
  mlir::OpBuilder builder_;
  Ops ops_;
  RowInterface interface_;
  mlir::Type elements_;
  Module module_;
  mlir::Block* body_ = nullptr;
  std::vector<std::string> found_;  // operands whose rows the index finds, in its order
  std::optional<RowIndex> index_;
};

}  // namespace hstujit
