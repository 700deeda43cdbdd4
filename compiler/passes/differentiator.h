// Forward-mode differentiation of straight-line arith, math and row operations: what score_grad and the gradients of
// rows are made with. A derivative that is zero or one is kept as such, so that nothing is left to fold that would need
// the freedom of fast math.
#pragma once

#include <optional>

#include "compiler/ir/ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

namespace hstujit {

struct Derivative {
  enum class Kind { kZero, kOne, kValue };
  Kind kind = Kind::kZero;
  mlir::Value value;
  bool is_zero() const { return kind == Kind::kZero; }
};

class Differentiator {
 public:
  using Value = mlir::Value;

  // `from` is copied to where `ops` builds, with `to` in place of its arguments.
  Differentiator(Ops& ops, mlir::Block& from, mlir::Block& to);

  // The derivative of an argument of `from`; 0 unless it is set.
  void seed(Value argument, const Derivative& derivative) { derivatives_[argument] = derivative; }

  // Copies the operation and finds its derivative; false when there is no rule for it.
  bool visit(mlir::Operation& operation);

  Value value(Value original) { return copies_.lookup(original); }
  Value derivative(Value original) { return materialize(derivatives_.lookup(original), original.getType()); }

 private:
  using Optional = std::optional<Derivative>;

  Value operand(unsigned i) { return copies_.lookup(operation_->getOperand(i)); }
  Derivative d(unsigned i) { return derivatives_.lookup(operation_->getOperand(i)); }
  Value dv(unsigned i) { return materialize(d(i), type()); }
  static Derivative just(Value value) { return {Derivative::Kind::kValue, value}; }
  mlir::Type type() { return operation_->getResult(0).getType(); }
  Value constant(double value) { return ops_.real(value, type()); }
  Value materialize(const Derivative& x, mlir::Type type);

  Derivative scale(const Derivative& x, Value factor);
  Derivative sum(const Derivative& x, const Derivative& y);
  Derivative minus(const Derivative& x);
  Derivative choose(Value condition, const Derivative& a, const Derivative& b);
  Value one_minus_square(Value t) { return ops_.fma(ops_.negf(t), t, constant(1)); }

  Optional silu_rule(mlir::math::FmaOp op);
  Derivative product_rule(unsigned a, unsigned b);
  Derivative quotient_rule(Value y);
  Derivative power_rule(Value y);
  Optional rule(Value y);

  Ops& ops_;
  mlir::IRMapping copies_;
  llvm::DenseMap<Value, Derivative> derivatives_;
  mlir::Operation* operation_ = nullptr;
};

}  // namespace hstujit
