#include "compiler/passes/transposer.h"

#include "compiler/ir/hstu.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace hstujit {

namespace arith = mlir::arith;
using mlir::Value;

Transposer::Transposer(Ops& ops, mlir::Block& block, mlir::ValueRange tangents)
    : ops_(ops), linear_(tangents.begin(), tangents.end()) {
  for (mlir::Operation& operation : block) {
    if (operation.getNumResults() != 1 ||
        llvm::none_of(operation.getOperands(), [&](Value operand) { return is_linear(operand); }))
      continue;
    linear_.insert(operation.getResult(0));
    program_.push_back(&operation);
  }
}

void Transposer::add(Value value, Value gradient) {
  Value& sum = gradients_[value];
  sum = sum ? ops_.addf(sum, gradient) : gradient;
}

mlir::LogicalResult Transposer::run() {
  for (mlir::Operation* operation : llvm::reverse(program_)) {
    const Value gradient = gradients_.lookup(operation->getResult(0));
    if (gradient && failed(transpose(*operation, gradient))) return mlir::failure();
  }
  return mlir::success();
}

mlir::LogicalResult Transposer::transpose(mlir::Operation& operation, Value gradient) {
  const auto operand = [&](unsigned i) { return operation.getOperand(i); };
  // A product is linear in one factor only.
  const auto product = [&](unsigned a, unsigned b) {
    if (is_linear(operand(a)) && is_linear(operand(b)))
      return mlir::LogicalResult(operation.emitError() << "is not linear");
    add_if_linear(operand(a), [&] { return ops_.mulf(operand(b), gradient); });
    add_if_linear(operand(b), [&] { return ops_.mulf(operand(a), gradient); });
    return mlir::success();
  };
  const auto itself = [&] { return gradient; };
  const auto negative = [&] { return ops_.negf(gradient); };
  const auto zero = [&] { return ops_.real(0, gradient.getType()); };
  return llvm::TypeSwitch<mlir::Operation*, mlir::LogicalResult>(&operation)
      .Case([&](arith::AddFOp) {
        add_if_linear(operand(0), itself);
        add_if_linear(operand(1), itself);
        return mlir::success();
      })
      .Case([&](arith::SubFOp) {
        add_if_linear(operand(0), itself);
        add_if_linear(operand(1), negative);
        return mlir::success();
      })
      .Case([&](arith::NegFOp) {
        add(operand(0), negative());
        return mlir::success();
      })
      .Case([&](arith::MulFOp) { return product(0, 1); })
      .Case([&](arith::DivFOp) {
        if (is_linear(operand(1))) return mlir::LogicalResult(operation.emitError() << "is not linear");
        add(operand(0), ops_.divf(gradient, operand(1)));
        return mlir::success();
      })
      .Case([&](mlir::math::FmaOp) {
        add_if_linear(operand(2), itself);
        return product(0, 1);
      })
      .Case([&](arith::SelectOp) {
        add_if_linear(operand(1), [&] { return ops_.select(operand(0), gradient, zero()); });
        add_if_linear(operand(2), [&] { return ops_.select(operand(0), zero(), gradient); });
        return mlir::success();
      })
      .Case([&](hstu::ReduceOp) {
        add(operand(0), hstu::SplatOp::create(ops_.builder(), ops_.location(), operand(0).getType(), gradient));
        return mlir::success();
      })
      .Case([&](hstu::SplatOp) {
        add(operand(0), hstu::ReduceOp::create(ops_.builder(), ops_.location(), operand(0).getType(), gradient));
        return mlir::success();
      })
      // Centering is its own transpose. A gradient's mean needs no correction: it is no larger than what is left.
      .Case([&](hstu::CenterOp) {
        const auto count = static_cast<double>(operation.getParentOfType<hstu::RowOp>().group_width());
        const Value sum =
            hstu::ReduceOp::create(ops_.builder(), ops_.location(), ops_.builder().getF32Type(), gradient);
        const Value shift = ops_.negf(ops_.mulf(sum, ops_.real(1 / count)));
        const Value shifts = hstu::SplatOp::create(ops_.builder(), ops_.location(), gradient.getType(), shift);
        add(operand(0), ops_.addf(gradient, shifts));
        return mlir::success();
      })
      .Default([](mlir::Operation* other) { return other->emitError() << "has no transpose"; });
}

void Transposer::erase_program() {
  for (mlir::Operation* operation : llvm::reverse(program_)) operation->erase();
}

}  // namespace hstujit
