// A condition for 32 values of one of its arguments at once: given a value of type i1 and an argument of it ("the
// unknown"), operations that compute a word whose bit i is the condition where the unknown is first + i. Exact.
//
// Comparisons whose one side follows from the unknown by monotone operations become words of bits, conditions without
// it all bits or none, and what combines them is bitwise.
#pragma once

#include <optional>

#include "compiler/passes/inverse.h"

namespace hstujit {

class Bits : Inverse<Bits, mlir::Value> {
 public:
  // `known` has every argument but the unknown, as a point.
  Bits(Ops& ops, Intervals& known, mlir::Value unknown, mlir::Value first)
      : Inverse(ops, known, unknown), first_(first) {}

  // Nothing where an operation has no rule: what depends on the unknown on both sides of a comparison, say.
  std::optional<mlir::Value> of(mlir::Value condition);

 private:
  friend Inverse;

  Optional compared(mlir::arith::CmpIOp compare);
  Optional of_unknown(mlir::Value bound, bool below);
  mlir::Value if_true(mlir::Value condition);
  static Optional without_rule() { return std::nullopt; }
  Optional both(Optional a, Optional b);
  Optional either(Optional a, Optional b);
  Optional negate(Optional bits);
  Optional selected(mlir::arith::SelectOp select, mlir::Value bound, bool below);
  Optional chosen(mlir::arith::SelectOp select, Optional if_true, Optional if_false);
  mlir::Value word(int64_t bits);

  mlir::Value first_;
};

}  // namespace hstujit
