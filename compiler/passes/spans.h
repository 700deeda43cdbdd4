// Solves a condition for one of its arguments: given a value of type i1 and an argument of it ("the unknown"),
// operations that compute a span [lo, hi) of [0, n) outside of which the condition is false. Other arguments lie in
// intervals. Sound always; tight where the unknown enters through monotone operations and the valid values have no
// holes.
#pragma once

#include <optional>

#include "compiler/passes/inverse.h"

namespace hstujit {

// An end that is not there is the universe's, 0 or n. `none`: the span is empty whatever the arguments are.
struct ValueSpan {
  mlir::Value lo;         // inclusive
  mlir::Value hi;         // exclusive
  mlir::Value condition;  // where there is one and it is false, the span is empty
  bool none = false;
  bool never_empty = false;  // lo < hi is known, before clipping to the universe
};

class Spans : Inverse<Spans, ValueSpan> {
 public:
  // `intervals` knows every argument but the unknown; `size` is n.
  Spans(Ops& ops, Intervals& intervals, mlir::Value unknown, mlir::Value size)
      : Inverse(ops, intervals, unknown), size_(size) {}

  // Where `condition` may be `wanted`. Nothing when an operation has no rule for intervals; it has been reported.
  std::optional<ValueSpan> where(mlir::Value condition, bool wanted = true);

  // The same in numbers, clipped to [0, n).
  std::pair<mlir::Value, mlir::Value> ends(const ValueSpan& span);

 private:
  friend Inverse;

  std::optional<ValueSpan> compared(mlir::arith::CmpIOp compare, bool wanted);
  std::optional<ValueSpan> of_unknown(mlir::Value bound, bool below);
  static ValueSpan if_true(mlir::Value condition) { return {.lo = {}, .hi = {}, .condition = condition}; }
  static std::optional<ValueSpan> without_rule() { return ValueSpan{}; }  // it may be anything
  std::optional<ValueSpan> both(std::optional<ValueSpan> a, std::optional<ValueSpan> b);
  std::optional<ValueSpan> either(std::optional<ValueSpan> a, std::optional<ValueSpan> b);
  std::optional<ValueSpan> selected(mlir::arith::SelectOp select, mlir::Value bound, bool below);
  ValueSpan without_emptiness(const ValueSpan& span);
  mlir::Value next(mlir::Value value) { return ops_.add(value, ops_.integer(1)); }

  mlir::Value size_;
};

}  // namespace hstujit
