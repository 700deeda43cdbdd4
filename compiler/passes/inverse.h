// Where a value is at most, or at least, a bound, traced back through operations to one argument that it follows from
// ("the unknown"). Other arguments lie in intervals. What a set of the unknown's values is, `Solver` says:
//
//   std::optional<Set> of_unknown(Value bound, bool below)   where the unknown is <= bound when `below`, else >= bound
//   Set if_true(Value condition)                             all values or none
//   std::optional<Set> without_rule()                        what is said of an operation that has no rule
//   std::optional<Set> both(a, b), either(a, b)
//   std::optional<Set> selected(SelectOp, Value bound, bool below)
#pragma once

#include <optional>

#include "compiler/passes/intervals.h"
#include "llvm/ADT/TypeSwitch.h"

namespace hstujit {

template <class Solver, class Set>
class Inverse {
 protected:
  using Value = mlir::Value;
  using Optional = std::optional<Set>;

  // `known` has every argument but the unknown.
  Inverse(Ops& ops, Intervals& known, Value unknown) : ops_(ops), known_(known), unknown_(unknown) {}

  bool depends(Value value) {
    if (value == unknown_) return true;
    if (const auto it = depends_.find(value); it != depends_.end()) return it->second;
    mlir::Operation* operation = value.getDefiningOp();
    const bool result =
        operation && llvm::any_of(operation->getOperands(), [&](Value operand) { return depends(operand); });
    depends_[value] = result;
    return result;
  }

  // Operands of a comparison, of which the first follows from the unknown and the second does not.
  struct Comparison {
    Value value;
    mlir::arith::CmpIPredicate predicate;
    Value other;
  };
  // Nothing where both follow from it, of conditions, and of unsigned comparisons with the unknown on the right.
  std::optional<Comparison> with_unknown_first(mlir::arith::CmpIOp compare, mlir::arith::CmpIPredicate predicate) {
    using Predicate = mlir::arith::CmpIPredicate;
    const Value a = compare.getLhs(), b = compare.getRhs();
    if (!a.getType().isIndex() || (depends(a) && depends(b))) return std::nullopt;
    if (!depends(b)) return Comparison{a, predicate, b};
    switch (predicate) {
      case Predicate::slt:
        return Comparison{b, Predicate::sgt, a};
      case Predicate::sle:
        return Comparison{b, Predicate::sge, a};
      case Predicate::sgt:
        return Comparison{b, Predicate::slt, a};
      case Predicate::sge:
        return Comparison{b, Predicate::sle, a};
      case Predicate::eq:
      case Predicate::ne:
        return Comparison{b, predicate, a};
      default:
        return std::nullopt;
    }
  }

  Optional at_least(Value value, Value bound) { return bounded(value, bound, false); }
  Optional at_most(Value value, Value bound) { return bounded(value, bound, true); }

  // value <= bound when `below`, else value >= bound.
  Optional bounded(Value value, Value bound, bool below) {
    namespace arith = mlir::arith;
    if (value == unknown_) return solver().of_unknown(bound, below);
    if (!depends(value)) {
      const auto interval = known_.of(value);
      if (!interval) return std::nullopt;
      return solver().if_true(below ? ops_.le(interval->lo, bound) : ops_.ge(interval->hi, bound));
    }
    return llvm::TypeSwitch<mlir::Operation*, Optional>(value.getDefiningOp())
        .template Case([&](arith::AddIOp op) -> Optional {
          if (depends(op.getLhs()) && depends(op.getRhs())) return solver().without_rule();
          const Value with = depends(op.getLhs()) ? op.getLhs() : op.getRhs();
          const auto rest = known_.of(depends(op.getLhs()) ? op.getRhs() : op.getLhs());
          if (!rest) return std::nullopt;
          return bounded(with, ops_.sub(bound, below ? rest->lo : rest->hi), below);
        })
        .template Case([&](arith::SubIOp op) -> Optional {
          if (depends(op.getLhs()) && depends(op.getRhs())) return solver().without_rule();
          const auto rest = known_.of(depends(op.getLhs()) ? op.getRhs() : op.getLhs());
          if (!rest) return std::nullopt;
          if (depends(op.getLhs())) return bounded(op.getLhs(), ops_.add(bound, below ? rest->hi : rest->lo), below);
          return bounded(op.getRhs(), ops_.sub(below ? rest->lo : rest->hi, bound), !below);
        })
        .template Case([&](arith::MaxSIOp op) {
          const Optional a = bounded(op.getLhs(), bound, below), b = bounded(op.getRhs(), bound, below);
          return below ? solver().both(a, b) : solver().either(a, b);
        })
        .template Case([&](arith::MinSIOp op) {
          const Optional a = bounded(op.getLhs(), bound, below), b = bounded(op.getRhs(), bound, below);
          return below ? solver().either(a, b) : solver().both(a, b);
        })
        .template Case([&](mlir::math::AbsIOp op) {
          const Optional inside = bounded(op.getOperand(), bound, below);
          const Optional mirrored = bounded(op.getOperand(), ops_.neg(bound), !below);
          return below ? solver().both(inside, mirrored) : solver().either(inside, mirrored);
        })
        .template Case([&](arith::MulIOp op) -> Optional {
          if (const auto factor = constant_index(op.getRhs())) return scaled(op.getLhs(), *factor, bound, below);
          if (const auto factor = constant_index(op.getLhs())) return scaled(op.getRhs(), *factor, bound, below);
          return solver().without_rule();
        })
        .template Case<arith::DivSIOp, arith::FloorDivSIOp>([&](auto op) { return divided(*op, bound, below); })
        .template Case([&](arith::SelectOp op) { return solver().selected(op, bound, below); })
        .Default([&](mlir::Operation*) -> Optional { return solver().without_rule(); });
  }

  Ops& ops_;
  Intervals& known_;
  Value unknown_;

 private:
  Solver& solver() { return static_cast<Solver&>(*this); }

  Optional scaled(Value value, int64_t factor, Value bound, bool below) {
    if (factor == 0) return solver().if_true(below ? ops_.ge(bound, ops_.integer(0)) : ops_.le(bound, ops_.integer(0)));
    if (factor < 0) return scaled(value, -factor, ops_.neg(bound), !below);
    const Value divisor = ops_.integer(factor);
    // value * k >= bound: value >= ceil(bound / k)
    const Value rounded = below ? bound : ops_.add(bound, ops_.integer(factor - 1));
    return bounded(value, ops_.floor_div(rounded, divisor), below);
  }

  Optional divided(mlir::Operation& division, Value bound, bool below) {
    const auto divisor = constant_index(division.getOperand(1));
    if (!divisor || *divisor <= 0) return solver().without_rule();
    const Value product = ops_.mul(bound, ops_.integer(*divisor));
    const Value rest = ops_.integer(*divisor - 1);
    if (mlir::isa<mlir::arith::FloorDivSIOp>(division)) {
      return bounded(division.getOperand(0), below ? ops_.add(product, rest) : product, below);
    }
    // Rounds to zero: the quotient 0 has numerators on both sides.
    const Value zero = ops_.integer(0);
    const Value limit = below ? ops_.select(ops_.ge(bound, zero), ops_.add(product, rest), product)
                              : ops_.select(ops_.le(bound, zero), ops_.sub(product, rest), product);
    return bounded(division.getOperand(0), limit, below);
  }

  llvm::DenseMap<Value, bool> depends_;
};

}  // namespace hstujit
