// Rewrites that make regions cheap and their text plain. Index arithmetic does not overflow, with any parameters and
// in any order of terms: all numbers in it are at most kMaxSeqLen or small (compiler/spec/limits.h).
#include "compiler/ir/ops.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace hstujit {

namespace {

namespace arith = mlir::arith;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::Value;
using Predicate = arith::CmpIPredicate;

bool is_constant(Value value, int64_t expected) { return constant_index(value) == expected; }

// a - b < 0  ->  a < b,  and  a < b + 1  ->  a <= b
LogicalResult move_terms(arith::CmpIOp op, PatternRewriter& rewriter) {
  Value a = op.getLhs(), b = op.getRhs();
  if (!a.getType().isIndex()) return mlir::failure();
  Predicate predicate = op.getPredicate();
  if (predicate > Predicate::sge) return mlir::failure();  // unsigned
  if (auto difference = a.getDefiningOp<arith::SubIOp>(); difference && is_constant(b, 0)) {
    rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, predicate, difference.getLhs(), difference.getRhs());
    return mlir::success();
  }
  auto sum = b.getDefiningOp<arith::AddIOp>();
  if (!sum) return mlir::failure();
  const std::optional<int64_t> step = constant_index(sum.getRhs());
  if (step == 1 && predicate == Predicate::slt)
    predicate = Predicate::sle;
  else if (step == 1 && predicate == Predicate::sge)
    predicate = Predicate::sgt;
  else if (step == -1 && predicate == Predicate::sle)
    predicate = Predicate::slt;
  else if (step == -1 && predicate == Predicate::sgt)
    predicate = Predicate::sge;
  else
    return mlir::failure();
  rewriter.replaceOpWithNewOp<arith::CmpIOp>(op, predicate, a, sum.getLhs());
  return mlir::success();
}

// Whether x <= y follows from y being max(x, ..) or x being min(y, ..).
bool known_not_above(Value x, Value y) {
  if (x == y) return true;
  if (auto max = y.getDefiningOp<arith::MaxSIOp>()) return max.getLhs() == x || max.getRhs() == x;
  if (auto min = x.getDefiningOp<arith::MinSIOp>()) return min.getLhs() == y || min.getRhs() == y;
  return false;
}

LogicalResult decide_compare(arith::CmpIOp op, PatternRewriter& rewriter) {
  Value a = op.getLhs(), b = op.getRhs();
  if (!a.getType().isIndex()) return mlir::failure();
  std::optional<bool> result;
  switch (op.getPredicate()) {
    case Predicate::sle:
      if (known_not_above(a, b)) result = true;
      break;
    case Predicate::sge:
      if (known_not_above(b, a)) result = true;
      break;
    case Predicate::slt:
      if (known_not_above(b, a)) result = false;
      break;
    case Predicate::sgt:
      if (known_not_above(a, b)) result = false;
      break;
    default:
      break;
  }
  if (!result) return mlir::failure();
  rewriter.replaceOpWithNewOp<arith::ConstantOp>(op, rewriter.getBoolAttr(*result));
  return mlir::success();
}

// c ? true : x  ->  c || x,  and its relatives
LogicalResult select_of_bools(arith::SelectOp op, PatternRewriter& rewriter) {
  if (!op.getType().isInteger(1)) return mlir::failure();
  Ops ops(rewriter, op.getLoc());
  const Value condition = op.getCondition(), a = op.getTrueValue(), b = op.getFalseValue();
  Value result;
  if (mlir::matchPattern(a, mlir::m_One()))
    result = ops.either(condition, b);
  else if (mlir::matchPattern(b, mlir::m_Zero()))
    result = ops.both(condition, a);
  else if (mlir::matchPattern(a, mlir::m_Zero()))
    result = ops.both(ops.negate(condition), b);
  else if (mlir::matchPattern(b, mlir::m_One()))
    result = ops.either(ops.negate(condition), a);
  else
    return mlir::failure();
  rewriter.replaceOp(op, result);
  return mlir::success();
}

// a && (a && b) -> a && b, and the same of ||; a && (a || b) -> a, a || (a && b) -> a
template <typename Outer, typename Inner>
LogicalResult absorb(Outer op, PatternRewriter& rewriter) {
  if (!op.getType().isInteger(1)) return mlir::failure();
  for (const auto& [x, y] : {std::pair{op.getLhs(), op.getRhs()}, std::pair{op.getRhs(), op.getLhs()}}) {
    auto same = y.template getDefiningOp<Outer>();
    if (same && (same.getLhs() == x || same.getRhs() == x)) return rewriter.replaceOp(op, y), mlir::success();
    auto other = y.template getDefiningOp<Inner>();
    if (other && (other.getLhs() == x || other.getRhs() == x)) return rewriter.replaceOp(op, x), mlir::success();
  }
  return mlir::failure();
}

// max(a, max(a, b)) -> max(a, b), max(a, min(a, b)) -> a, and with constants max(max(a, 1), 2) -> max(a, 2)
template <typename Outer, typename Inner>
LogicalResult nested_extremes(Outer op, PatternRewriter& rewriter) {
  for (const auto& [x, y] : {std::pair{op.getLhs(), op.getRhs()}, std::pair{op.getRhs(), op.getLhs()}}) {
    auto same = y.template getDefiningOp<Outer>();
    if (same && (same.getLhs() == x || same.getRhs() == x)) return rewriter.replaceOp(op, y), mlir::success();
    auto other = y.template getDefiningOp<Inner>();
    if (other && (other.getLhs() == x || other.getRhs() == x)) return rewriter.replaceOp(op, x), mlir::success();
    const auto constant = constant_index(x);
    if (!constant || !same) continue;
    const auto inner = constant_index(same.getRhs());
    if (!inner) continue;
    const int64_t winner =
        std::is_same_v<Outer, arith::MaxSIOp> ? std::max(*constant, *inner) : std::min(*constant, *inner);
    const auto attribute = rewriter.getIntegerAttr(op.getType(), winner);  // an index, or what a score reads
    const Value merged = arith::ConstantOp::create(rewriter, op.getLoc(), attribute);
    return rewriter.replaceOpWithNewOp<Outer>(op, same.getLhs(), merged), mlir::success();
  }
  return mlir::failure();
}

// 0 - (0 - x) -> x, a - (0 - b) -> a + b, 0 - (a - b) -> b - a
LogicalResult negations(arith::SubIOp op, PatternRewriter& rewriter) {
  auto inner = op.getRhs().getDefiningOp<arith::SubIOp>();
  if (!inner) return mlir::failure();
  if (is_constant(op.getLhs(), 0)) {
    return rewriter.replaceOpWithNewOp<arith::SubIOp>(op, inner.getRhs(), inner.getLhs()), mlir::success();
  }
  if (is_constant(inner.getLhs(), 0)) {
    return rewriter.replaceOpWithNewOp<arith::AddIOp>(op, op.getLhs(), inner.getRhs()), mlir::success();
  }
  return mlir::failure();
}

// The magnitude of an integer, as a real number: that of the number, which takes no instruction of its own.
LogicalResult magnitude_of_real(arith::SIToFPOp op, PatternRewriter& rewriter) {
  auto cast = op.getIn().getDefiningOp<arith::IndexCastOp>();
  auto magnitude = (cast ? cast.getIn() : op.getIn()).getDefiningOp<mlir::math::AbsIOp>();
  if (!magnitude) return mlir::failure();
  Value integer = magnitude.getOperand();
  if (cast) integer = arith::IndexCastOp::create(rewriter, op.getLoc(), cast.getType(), integer);
  const Value real = arith::SIToFPOp::create(rewriter, op.getLoc(), op.getType(), integer);
  rewriter.replaceOpWithNewOp<mlir::math::AbsFOp>(op, real);
  return mlir::success();
}

bool is_real_constant(Value value) { return mlir::matchPattern(value, mlir::m_Constant()); }

// (x * alpha) * constant -> x * (alpha * constant): the factor does not depend on x and is hoisted out of the loops.
// Only a product that is used nowhere else is taken apart.
LogicalResult hoist_factor(arith::MulFOp op, PatternRewriter& rewriter) {
  auto inner = op.getLhs().getDefiningOp<arith::MulFOp>();
  if (!inner || !is_real_constant(op.getRhs()) || !inner->hasOneUse()) return mlir::failure();
  if (is_real_constant(inner.getLhs()) && is_real_constant(inner.getRhs()))
    return mlir::failure();  // is yet to be folded
  const Value factor = arith::MulFOp::create(rewriter, op.getLoc(), inner.getRhs(), op.getRhs());
  rewriter.replaceOpWithNewOp<arith::MulFOp>(op, inner.getLhs(), factor);
  return mlir::success();
}

// (constant * f) * alpha with f depending on x comes from product rules: constant * (f * alpha) -> f * (alpha *
// constant)
LogicalResult constant_to_right(arith::MulFOp op, PatternRewriter& rewriter) {
  if (!is_real_constant(op.getLhs()) || is_real_constant(op.getRhs())) return mlir::failure();
  rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getRhs(), op.getLhs());
  return mlir::success();
}

// A factor that is known before the loops, i.e. made of scalars of the launch and constants only.
bool is_uniform(Value value) {
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) return is_launch_scalar(argument);
  if (is_real_constant(value)) return true;
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product && is_uniform(product.getLhs()) && is_uniform(product.getRhs());
}

// (f * u) * v -> f * (u * v) for uniform u, v.
LogicalResult gather_uniform(arith::MulFOp op, PatternRewriter& rewriter) {
  for (const auto& [x, v] : {std::pair{op.getLhs(), op.getRhs()}, std::pair{op.getRhs(), op.getLhs()}}) {
    auto inner = x.getDefiningOp<arith::MulFOp>();
    if (!inner || !inner->hasOneUse() || !is_uniform(v) || is_uniform(x)) continue;
    for (const auto& [f, u] : {std::pair{inner.getLhs(), inner.getRhs()}, std::pair{inner.getRhs(), inner.getLhs()}}) {
      if (!is_uniform(u)) continue;
      const Value factor = arith::MulFOp::create(rewriter, op.getLoc(), v, u);
      return rewriter.replaceOpWithNewOp<arith::MulFOp>(op, f, factor), mlir::success();
    }
  }
  return mlir::failure();
}

struct Simplify : mlir::PassWrapper<Simplify, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Simplify)
  llvm::StringRef getArgument() const final { return "hstu-simplify"; }
  llvm::StringRef getDescription() const final { return "rewrite regions as a person would write them"; }

  void runOnOperation() override {
    mlir::MLIRContext* context = &getContext();
    mlir::RewritePatternSet patterns(context);
    for (mlir::Dialect* dialect : context->getLoadedDialects()) dialect->getCanonicalizationPatterns(patterns);
    for (const mlir::RegisteredOperationName name : context->getRegisteredOperations()) {
      name.getCanonicalizationPatterns(patterns, context);
    }
    patterns.add(move_terms).add(decide_compare).add(select_of_bools).add(negations);
    patterns.add(magnitude_of_real).add(hoist_factor).add(constant_to_right).add(gather_uniform);
    patterns.add(absorb<arith::AndIOp, arith::OrIOp>).add(absorb<arith::OrIOp, arith::AndIOp>);
    patterns.add(nested_extremes<arith::MaxSIOp, arith::MinSIOp>).add(nested_extremes<arith::MinSIOp, arith::MaxSIOp>);
    // Users write expressions: none that these patterns turn around and around may take memory without end.
    constexpr int64_t kMostRewrites = int64_t{1} << 18;
    mlir::GreedyRewriteConfig config;
    config.setMaxNumRewrites(kMostRewrites);
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns), config))) {
      getOperation().emitError() << "simplification does not come to an end";
      signalPassFailure();
    }
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_simplify_pass() { return std::make_unique<Simplify>(); }

}  // namespace hstujit
