// A condition for 32 values of one of its arguments at once: given a value of type i1 and an argument of it ("the
// unknown"), operations that compute a word whose bit i is the condition where the unknown is first + i. Exact.
//
// Comparisons whose one side follows from the unknown by monotone operations become words of bits, conditions without
// it all bits or none, and what combines them is bitwise.
#pragma once

#include <optional>

#include "compiler/passes/intervals.h"

namespace hstujit {

class Bits {
 public:
  // `known` has every argument but the unknown, as a point.
  Bits(Ops& ops, Intervals& known, mlir::Value unknown, mlir::Value first)
      : ops_(ops), known_(known), unknown_(unknown), first_(first) {}

  // Nothing where an operation has no rule: what depends on the unknown on both sides of a comparison, say.
  std::optional<mlir::Value> of(mlir::Value condition);

 private:
  using Optional = std::optional<mlir::Value>;

  Optional compared(mlir::arith::CmpIOp compare);
  Optional at_least(mlir::Value value, mlir::Value bound);
  Optional at_most(mlir::Value value, mlir::Value bound);
  Optional bounded(mlir::Value value, mlir::Value bound, bool below);
  Optional scaled(mlir::Value value, int64_t factor, mlir::Value bound, bool below);
  Optional divided(mlir::Operation& division, mlir::Value bound, bool below);
  Optional selected(mlir::arith::SelectOp select, Optional if_true, Optional if_false);
  Optional both(Optional a, Optional b);
  Optional either(Optional a, Optional b);
  Optional negate(Optional bits);
  Optional of_known(mlir::Value condition);
  mlir::Value all_or_none(mlir::Value condition);
  mlir::Value word(int64_t bits);
  bool depends(mlir::Value value);

  Ops& ops_;
  Intervals& known_;
  mlir::Value unknown_;
  mlir::Value first_;
  llvm::DenseMap<mlir::Value, bool> depends_;
};

}  // namespace hstujit
