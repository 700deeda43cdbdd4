// Turns a linear program around: from the derivatives that forward mode gives of the outputs to the gradients of the
// inputs. What adds becomes what is added to, hstu.splat becomes hstu.reduce and the other way around.
#pragma once

#include "compiler/ir/ops.h"
#include "llvm/ADT/DenseSet.h"

namespace hstujit {

class Transposer {
 public:
  using Value = mlir::Value;

  // `tangents` are arguments of `block` that the program is linear in; it is what depends on them.
  Transposer(Ops& ops, mlir::Block& block, mlir::ValueRange tangents);

  // Adds to the gradient with respect to a value of the program.
  void add(Value value, Value gradient);
  // Passes all gradients on to the tangents, from the last operation to the first; fails where one is not linear.
  mlir::LogicalResult run();
  // Null for a value that nothing depends on.
  Value gradient(Value value) const { return gradients_.lookup(value); }
  // Removes the program, which nothing uses any more.
  void erase_program();

 private:
  bool is_linear(Value value) const { return linear_.contains(value); }
  mlir::LogicalResult transpose(mlir::Operation& operation, Value gradient);
  void add_if_linear(Value value, llvm::function_ref<Value()> gradient) {
    if (is_linear(value)) add(value, gradient());
  }

  Ops& ops_;
  llvm::DenseSet<Value> linear_;
  llvm::DenseMap<Value, Value> gradients_;
  mlir::SmallVector<mlir::Operation*> program_;  // in order
};

}  // namespace hstujit
