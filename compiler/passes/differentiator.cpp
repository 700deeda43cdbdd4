#include "compiler/passes/differentiator.h"

#include <cmath>
#include <numbers>

#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "llvm/ADT/TypeSwitch.h"

namespace hstujit {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::Value;

Differentiator::Differentiator(Ops& ops, mlir::Block& from, mlir::Block& to) : ops_(ops) {
  for (const mlir::BlockArgument argument : from.getArguments())
    copies_.map(argument, to.getArgument(argument.getArgNumber()));
}

bool Differentiator::visit(mlir::Operation& operation) {
  mlir::Operation* copy = ops_.builder().clone(operation, copies_);
  if (!mlir::getElementTypeOrSelf(operation.getResult(0)).isF32()) return true;  // a condition
  const bool constant =
      llvm::none_of(operation.getOperands(), [&](Value operand) { return !derivatives_.lookup(operand).is_zero(); });
  if (constant) return true;
  operation_ = &operation;
  const Optional derivative = rule(copy->getResult(0));
  if (derivative) derivatives_[operation.getResult(0)] = *derivative;
  return derivative.has_value();
}

Value Differentiator::materialize(const Derivative& x, mlir::Type type) {
  if (x.kind == Derivative::Kind::kValue) return x.value;
  return ops_.real(x.is_zero() ? 0 : 1, type);
}

Derivative Differentiator::scale(const Derivative& x, Value factor) {
  if (x.is_zero()) return x;
  return just(x.kind == Derivative::Kind::kOne ? factor : ops_.mulf(factor, x.value));
}

Derivative Differentiator::sum(const Derivative& x, const Derivative& y) {
  if (x.is_zero()) return y;
  if (y.is_zero()) return x;
  return just(ops_.addf(materialize(x, type()), materialize(y, type())));
}

Derivative Differentiator::minus(const Derivative& x) {
  if (x.is_zero()) return x;
  return just(x.kind == Derivative::Kind::kOne ? constant(-1) : ops_.negf(x.value));
}

Derivative Differentiator::choose(Value condition, const Derivative& a, const Derivative& b) {
  return just(ops_.select(condition, materialize(a, type()), materialize(b, type())));
}

// silu, h + h * tanh(h). Its factors are bounded for every finite h, where h * tanh'(h) in other forms is infinity
// times 0.
std::optional<Derivative> Differentiator::silu_rule(math::FmaOp op) {
  auto tanh = op.getB().getDefiningOp<math::TanhOp>();
  if (!tanh || op.getA() != op.getC() || tanh.getOperand() != op.getA()) return std::nullopt;
  const Value h = operand(0), t = operand(1);
  const Value slope = ops_.fma(h, one_minus_square(t), t);  // dy/dh - 1
  const Derivative dh = d(0);
  if (dh.kind == Derivative::Kind::kOne) return just(ops_.addf(slope, constant(1)));
  return just(ops_.fma(dh.value, slope, dh.value));
}

Derivative Differentiator::product_rule(unsigned a, unsigned b) {
  if (operation_->getOperand(a) == operation_->getOperand(b)) return scale(d(a), ops_.mulf(operand(a), constant(2)));
  return sum(scale(d(a), operand(b)), scale(d(b), operand(a)));
}

Derivative Differentiator::quotient_rule(Value y) {
  const Derivative correction = scale(d(1), y);
  if (correction.is_zero()) return just(ops_.divf(dv(0), operand(1)));
  return just(ops_.divf(materialize(sum(d(0), minus(correction)), type()), operand(1)));
}

// b a^(b - 1) da + y log(a) db
Derivative Differentiator::power_rule(Value y) {
  const Value a = operand(0), b = operand(1);
  const Value less = ops_.pow(a, ops_.subf(b, constant(1)));
  if (const mlir::Attribute positive = y.getDefiningOp()->getAttr(kPositiveBase))
    less.getDefiningOp()->setAttr(kPositiveBase, positive);
  const Derivative of_base = scale(d(0), ops_.mulf(b, less));
  return d(1).is_zero() ? of_base : sum(of_base, scale(d(1), ops_.mulf(y, ops_.log(a))));
}

std::optional<Derivative> Differentiator::rule(Value y) {
  const auto greater = [&] { return ops_.gtf(operand(0), operand(1)); };
  return llvm::TypeSwitch<mlir::Operation*, Optional>(operation_)
      .Case([&](arith::AddFOp) -> Optional { return sum(d(0), d(1)); })
      .Case([&](arith::SubFOp) -> Optional { return sum(d(0), minus(d(1))); })
      .Case([&](arith::NegFOp) -> Optional { return minus(d(0)); })
      .Case([&](arith::MulFOp) -> Optional { return product_rule(0, 1); })
      .Case([&](arith::DivFOp) -> Optional { return quotient_rule(y); })
      .Case([&](math::FmaOp op) -> Optional {
        if (const Optional silu = silu_rule(op)) return silu;
        return sum(product_rule(0, 1), d(2));
      })
      .Case([&](math::TanhOp) -> Optional { return scale(d(0), one_minus_square(y)); })
      .Case([&](math::ExpOp) -> Optional { return scale(d(0), y); })
      .Case([&](math::Exp2Op) -> Optional { return scale(d(0), ops_.mulf(y, constant(std::numbers::ln2))); })
      .Case([&](math::LogOp) -> Optional { return just(ops_.divf(dv(0), operand(0))); })
      .Case([&](math::Log2Op) -> Optional {
        return just(ops_.divf(dv(0), ops_.mulf(operand(0), constant(std::numbers::ln2))));
      })
      .Case([&](math::SinOp) -> Optional { return scale(d(0), ops_.cos(operand(0))); })
      .Case([&](math::CosOp) -> Optional { return scale(d(0), ops_.negf(ops_.sin(operand(0)))); })
      .Case([&](math::PowFOp) -> Optional { return power_rule(y); })
      .Case([&](math::FloorOp) -> Optional { return Derivative(); })
      .Case([&](math::SqrtOp) -> Optional { return just(ops_.divf(dv(0), ops_.mulf(y, constant(2)))); })
      .Case([&](math::RsqrtOp) -> Optional {
        return scale(d(0), ops_.mulf(ops_.mulf(ops_.mulf(y, y), y), constant(-0.5)));
      })
      // A number of the row and what its elements say of it have the same derivative but for their types.
      .Case([&](hstu::ReduceOp) -> Optional {
        return just(
            hstu::ReduceOp::create(ops_.builder(), ops_.location(), type(), materialize(d(0), operand(0).getType())));
      })
      .Case([&](hstu::SplatOp) -> Optional {
        return just(
            hstu::SplatOp::create(ops_.builder(), ops_.location(), type(), materialize(d(0), operand(0).getType())));
      })
      .Case([&](hstu::CenterOp) -> Optional {
        return just(hstu::CenterOp::create(ops_.builder(), ops_.location(), type(), materialize(d(0), type())));
      })
      .Case([&](hstu::RoundOp) -> Optional { return d(0); })
      .Case([&](math::ErfOp) -> Optional {
        const Value gauss = ops_.exp(ops_.negf(ops_.mulf(operand(0), operand(0))));
        return scale(d(0), ops_.mulf(gauss, constant(2 * std::numbers::inv_sqrtpi)));
      })
      .Case([&](math::AbsFOp) -> Optional { return choose(ops_.gtf(operand(0), constant(0)), d(0), minus(d(0))); })
      .Case([&](arith::MaxNumFOp) -> Optional { return choose(greater(), d(0), d(1)); })
      .Case([&](arith::MinNumFOp) -> Optional { return choose(greater(), d(1), d(0)); })
      // At NaN the derivative is that of the first operand, as in PyTorch's relu.
      .Case([&](arith::MaximumFOp) -> Optional { return choose(ops_.lef(operand(0), operand(1)), d(1), d(0)); })
      .Case([&](arith::MinimumFOp) -> Optional { return choose(ops_.gef(operand(0), operand(1)), d(1), d(0)); })
      .Case([&](arith::SelectOp) -> Optional { return choose(operand(0), d(1), d(2)); })
      .Default([](mlir::Operation*) -> Optional { return std::nullopt; });
}

}  // namespace hstujit
