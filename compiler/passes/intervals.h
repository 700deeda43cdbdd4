// Interval arithmetic as IR: for a value computed from arguments that lie in intervals, operations that compute the
// ends of an interval that holds it. Sound always; exact where each argument occurs once on the way.
#pragma once

#include <optional>

#include "compiler/ir/ops.h"
#include "llvm/ADT/DenseMap.h"

namespace hstujit {

// index: lo <= value <= hi. i1: lo is "must be true", hi is "may be true".
struct ValueInterval {
  mlir::Value lo;
  mlir::Value hi;
  bool is_point() const { return lo == hi; }
};

class Intervals {
 public:
  explicit Intervals(Ops& ops) : ops_(ops) {}

  void set(mlir::Value value, ValueInterval interval) { known_[value] = interval; }
  // Nothing when an operation on the way has no rule; it has then been reported as an error.
  std::optional<ValueInterval> of(mlir::Value value);

 private:
  std::optional<ValueInterval> compute(mlir::Operation& operation);
  std::optional<ValueInterval> of_bool(mlir::Operation& operation, llvm::ArrayRef<ValueInterval> operands);
  std::optional<ValueInterval> of_index(mlir::Operation& operation, llvm::ArrayRef<ValueInterval> operands);
  ValueInterval compare(mlir::arith::CmpIPredicate predicate, ValueInterval a, ValueInterval b);
  ValueInterval below_unsigned(ValueInterval a, ValueInterval b, bool or_equal);
  ValueInterval select(ValueInterval condition, ValueInterval a, ValueInterval b);
  ValueInterval scale(ValueInterval a, int64_t factor);

  Ops& ops_;
  llvm::DenseMap<mlir::Value, ValueInterval> known_;
};

// The value of an index constant.
std::optional<int64_t> constant_index(mlir::Value value);

}  // namespace hstujit
