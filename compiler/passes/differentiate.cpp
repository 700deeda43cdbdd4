// score -> score_grad: forward-mode differentiation with respect to x. A derivative that is zero or one is kept as
// such, so that nothing is left to fold that would need the freedom of fast math.
#include <cmath>
#include <numbers>

#include "compiler/ir/ops.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/region_functions.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace hstujit {

namespace {

namespace arith = mlir::arith;
namespace math = mlir::math;
using mlir::Value;

struct Derivative {
  enum class Kind { kZero, kOne, kValue };
  Kind kind = Kind::kZero;
  Value value;
  bool is_zero() const { return kind == Kind::kZero; }
};

class Differentiator {
 public:
  Differentiator(Ops& ops, mlir::func::FuncOp score, mlir::Block& body) : ops_(ops) {
    for (auto [from, to] : llvm::zip(score.getArguments(), body.getArguments())) copies_.map(from, to);
    derivatives_[score.getArgument(0)] = {Derivative::Kind::kOne, {}};
  }

  // Copies the operation and finds its derivative; false when there is no rule for it.
  bool visit(mlir::Operation& operation) {
    mlir::Operation* copy = ops_.builder().clone(operation, copies_);
    if (!operation.getResult(0).getType().isF32()) return true;  // a condition
    const bool constant =
        llvm::none_of(operation.getOperands(), [&](Value operand) { return !derivatives_.lookup(operand).is_zero(); });
    if (constant) return true;
    operation_ = &operation;
    const std::optional<Derivative> derivative = rule(copy->getResult(0));
    if (derivative) derivatives_[operation.getResult(0)] = *derivative;
    return derivative.has_value();
  }

  Value value(Value original) { return copies_.lookup(original); }
  Value derivative(Value original) { return materialize(derivatives_.lookup(original)); }

 private:
  Value operand(unsigned i) { return copies_.lookup(operation_->getOperand(i)); }
  Derivative d(unsigned i) { return derivatives_.lookup(operation_->getOperand(i)); }
  Value dv(unsigned i) { return materialize(d(i)); }
  static Derivative just(Value value) { return {Derivative::Kind::kValue, value}; }

  Value materialize(const Derivative& x) {
    if (x.kind == Derivative::Kind::kValue) return x.value;
    return ops_.real(x.is_zero() ? 0 : 1);
  }
  Derivative scale(const Derivative& x, Value factor) {
    if (x.is_zero()) return x;
    return just(x.kind == Derivative::Kind::kOne ? factor : ops_.mulf(factor, x.value));
  }
  Derivative sum(const Derivative& x, const Derivative& y) {
    if (x.is_zero()) return y;
    if (y.is_zero()) return x;
    return just(ops_.addf(materialize(x), materialize(y)));
  }
  Derivative minus(const Derivative& x) {
    if (x.is_zero()) return x;
    return just(x.kind == Derivative::Kind::kOne ? ops_.real(-1) : ops_.negf(x.value));
  }
  Value one_minus_square(Value t) { return ops_.fma(ops_.negf(t), t, ops_.real(1)); }

  // silu, h + h * tanh(h). Its factors are bounded for every finite h, where h * tanh'(h) in other forms is infinity
  // times 0.
  std::optional<Derivative> silu_rule(math::FmaOp op) {
    auto tanh = op.getB().getDefiningOp<math::TanhOp>();
    if (!tanh || op.getA() != op.getC() || tanh.getOperand() != op.getA()) return std::nullopt;
    const Value h = operand(0), t = operand(1);
    const Value slope = ops_.fma(h, one_minus_square(t), t);  // dy/dh - 1
    const Derivative dh = d(0);
    if (dh.kind == Derivative::Kind::kOne) return just(ops_.addf(slope, ops_.real(1)));
    return just(ops_.fma(dh.value, slope, dh.value));
  }

  Derivative product_rule(unsigned a, unsigned b) {
    if (operation_->getOperand(a) == operation_->getOperand(b)) return scale(d(a), ops_.mulf(operand(a), ops_.real(2)));
    return sum(scale(d(a), operand(b)), scale(d(b), operand(a)));
  }

  Derivative quotient_rule(Value y) {
    const Derivative correction = scale(d(1), y);
    if (correction.is_zero()) return just(ops_.divf(dv(0), operand(1)));
    return just(ops_.divf(materialize(sum(d(0), minus(correction))), operand(1)));
  }

  Derivative choose(Value condition, const Derivative& a, const Derivative& b) {
    return just(ops_.select(condition, materialize(a), materialize(b)));
  }

  std::optional<Derivative> rule(Value y) {
    using Optional = std::optional<Derivative>;
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
        .Case([&](math::Exp2Op) -> Optional { return scale(d(0), ops_.mulf(y, ops_.real(std::numbers::ln2))); })
        .Case([&](math::LogOp) -> Optional { return just(ops_.divf(dv(0), operand(0))); })
        .Case([&](math::SqrtOp) -> Optional { return just(ops_.divf(dv(0), ops_.mulf(y, ops_.real(2)))); })
        .Case([&](math::ErfOp) -> Optional {
          const Value gauss = ops_.exp(ops_.negf(ops_.mulf(operand(0), operand(0))));
          return scale(d(0), ops_.mulf(gauss, ops_.real(2 * std::numbers::inv_sqrtpi)));
        })
        .Case([&](math::AbsFOp) -> Optional { return choose(ops_.gtf(operand(0), ops_.real(0)), d(0), minus(d(0))); })
        .Case<arith::MaxNumFOp, arith::MaximumFOp>([&](auto) -> Optional { return choose(greater(), d(0), d(1)); })
        .Case<arith::MinNumFOp, arith::MinimumFOp>([&](auto) -> Optional { return choose(greater(), d(1), d(0)); })
        .Case([&](arith::SelectOp) -> Optional { return choose(operand(0), d(1), d(2)); })
        .Default([](mlir::Operation*) -> Optional { return std::nullopt; });
  }

  Ops& ops_;
  mlir::IRMapping copies_;
  llvm::DenseMap<Value, Derivative> derivatives_;
  mlir::Operation* operation_ = nullptr;
};

struct Differentiate : mlir::PassWrapper<Differentiate, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Differentiate)
  llvm::StringRef getArgument() const final { return "hstu-differentiate"; }
  llvm::StringRef getDescription() const final { return "derive score_grad from score"; }

  void runOnOperation() override {
    auto score = getOperation().lookupSymbol<mlir::func::FuncOp>(kScore);
    if (!score) return;
    mlir::OpBuilder builder(score);
    builder.setInsertionPointToEnd(getOperation().getBody());
    const mlir::Type real = builder.getF32Type();
    auto function = create_region_function(builder, score.getLoc(), kScoreGrad,
                                           builder.getFunctionType(score.getArgumentTypes(), {real, real}),
                                           {"x", "alpha"}, {"y", "dy"});
    mlir::Block* body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    Ops ops(builder, score.getLoc());
    Differentiator differentiator(ops, score, *body);
    mlir::Block& source = score.getBody().front();
    for (mlir::Operation& operation : source.without_terminator()) {
      if (differentiator.visit(operation)) continue;
      operation.emitError() << "has no derivative";
      return signalPassFailure();
    }
    const Value y = source.getTerminator()->getOperand(0);
    mlir::func::ReturnOp::create(builder, score.getLoc(),
                                 mlir::ValueRange{differentiator.value(y), differentiator.derivative(y)});
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_differentiate_pass() { return std::make_unique<Differentiate>(); }

}  // namespace hstujit
