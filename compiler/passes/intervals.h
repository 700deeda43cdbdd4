// Interval arithmetic as IR: for a value computed from arguments that lie in intervals, operations that compute the
// ends of an interval that holds it. Sound always; exact where each argument occurs once on the way.
#pragma once

#include <optional>

#include "compiler/ir/ops.h"
#include "llvm/ADT/DenseMap.h"

namespace hstujit {

// index: lo <= value <= hi. i1: lo is "must be true", hi is "may be true".
struct Interval {
  mlir::Value lo;
  mlir::Value hi;
  bool is_point() const { return lo == hi; }
};

class Intervals {
 public:
  explicit Intervals(Ops& ops) : ops_(ops) {}

  void set(mlir::Value value, Interval interval) { known_[value] = interval; }
  // Nothing when an operation on the way has no rule; it has then been reported as an error.
  std::optional<Interval> of(mlir::Value value);

 private:
  std::optional<Interval> compute(mlir::Operation& operation);
  std::optional<Interval> of_bool(mlir::Operation& operation, llvm::ArrayRef<Interval> operands);
  std::optional<Interval> of_index(mlir::Operation& operation, llvm::ArrayRef<Interval> operands);
  Interval compare(mlir::arith::CmpIPredicate predicate, Interval a, Interval b);
  Interval below_unsigned(Interval a, Interval b, bool or_equal);
  Interval select(Interval condition, Interval a, Interval b);
  Interval scale(Interval a, int64_t factor);

  Ops& ops_;
  llvm::DenseMap<mlir::Value, Interval> known_;
};

// The value of an index constant.
std::optional<int64_t> constant_index(mlir::Value value);

}  // namespace hstujit
