// These bring sums of a row forward, so that fewer of them wait for one another, and move what is one number for the
// whole row out of its elements.
#include "compiler/ir/row_patterns.h"

#include "compiler/ir/hstu.h"
#include "compiler/ir/ops.h"
#include "mlir/IR/Matchers.h"

namespace hstujit::hstu {

namespace {

namespace arith = mlir::arith;
using mlir::LogicalResult;
using mlir::PatternRewriter;
using mlir::Value;

// The number that every element is: of a splat, or of a constant, for which one is made.
std::optional<float> constant_elements(Value value) {
  mlir::DenseElementsAttr elements;
  if (!mlir::matchPattern(value, mlir::m_Constant(&elements)) || !elements.isSplat()) return std::nullopt;
  return elements.getSplatValue<float>();
}

bool is_uniform(Value value) { return value.getDefiningOp<SplatOp>() || constant_elements(value); }

Value uniform(Ops& ops, Value value) {
  if (auto splat = value.getDefiningOp<SplatOp>()) return splat.getValue();
  return ops.real(*constant_elements(value));
}

Value reduce(Ops& ops, Value elements) {
  return ReduceOp::create(ops.builder(), ops.location(), ops.builder().getF32Type(), elements);
}

// Elements that a reduction beside this operation sums up.
int64_t summed(mlir::Operation* operation) { return operation->getParentOfType<RowOp>().group_width(); }

// sum(s) -> count * s
LogicalResult reduce_uniform(ReduceOp op, PatternRewriter& rewriter) {
  const Value value = op.getValue();
  if (!is_uniform(value)) return mlir::failure();
  Ops ops(rewriter, op.getLoc());
  rewriter.replaceOp(op, ops.mulf(uniform(ops, value), ops.real(static_cast<double>(summed(op)))));
  return mlir::success();
}

// sum(-x) -> -sum(x)
LogicalResult reduce_negative(ReduceOp op, PatternRewriter& rewriter) {
  auto negative = op.getValue().getDefiningOp<arith::NegFOp>();
  if (!negative) return mlir::failure();
  Ops ops(rewriter, op.getLoc());
  rewriter.replaceOp(op, ops.negf(reduce(ops, negative.getOperand())));
  return mlir::success();
}

// A product of which one factor is a number of the row: (the elements, that number).
std::optional<std::pair<Value, Value>> scaled(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product) return std::nullopt;
  if (is_uniform(product.getRhs())) return std::pair{product.getLhs(), product.getRhs()};
  if (is_uniform(product.getLhs())) return std::pair{product.getRhs(), product.getLhs()};
  return std::nullopt;
}

// sum(x * s) -> sum(x) * s
LogicalResult reduce_scaled(ReduceOp op, PatternRewriter& rewriter) {
  const auto parts = scaled(op.getValue());
  if (!parts) return mlir::failure();
  Ops ops(rewriter, op.getLoc());
  rewriter.replaceOp(op, ops.mulf(reduce(ops, parts->first), uniform(ops, parts->second)));
  return mlir::success();
}

// Whether elements are what a row is off from its mean, times a number of the row.
bool sums_to_zero(Value value) {
  if (const auto parts = scaled(value)) return sums_to_zero(parts->first);
  return value.getDefiningOp<CenterOp>() != nullptr;
}

LogicalResult reduce_zero(ReduceOp op, PatternRewriter& rewriter) {
  if (!sums_to_zero(op.getValue())) return mlir::failure();
  rewriter.replaceOp(op, Ops(rewriter, op.getLoc()).real(0));
  return mlir::success();
}

// sum(x + y) -> sum(x) where y sums up to 0
LogicalResult reduce_without_zero(ReduceOp op, PatternRewriter& rewriter) {
  auto terms = op.getValue().getDefiningOp<arith::AddFOp>();
  if (!terms) return mlir::failure();
  for (const auto& [x, y] : {std::pair{terms.getLhs(), terms.getRhs()}, std::pair{terms.getRhs(), terms.getLhs()}}) {
    if (!sums_to_zero(y)) continue;
    rewriter.replaceOpWithNewOp<ReduceOp>(op, op.getType(), x);
    return mlir::success();
  }
  return mlir::failure();
}

// Whether the sum of a term no longer needs a number that the term is made with.
bool simplifies(Value term) {
  if (auto negative = term.getDefiningOp<arith::NegFOp>()) return simplifies(negative.getOperand());
  if (auto sum = term.getDefiningOp<arith::AddFOp>()) return simplifies(sum.getLhs()) || simplifies(sum.getRhs());
  return is_uniform(term) || scaled(term).has_value();
}

// sum(x + y) -> sum(x) + sum(y), where that brings a sum forward, and the same of a difference
template <typename Op>
LogicalResult reduce_terms(ReduceOp op, PatternRewriter& rewriter) {
  auto terms = op.getValue().getDefiningOp<Op>();
  if (!terms || !(simplifies(terms.getLhs()) || simplifies(terms.getRhs()))) return mlir::failure();
  Ops ops(rewriter, op.getLoc());
  const Value a = reduce(ops, terms.getLhs()), b = reduce(ops, terms.getRhs());
  rewriter.replaceOpWithNewOp<Op>(op, a, b);
  return mlir::success();
}

// The splat of a constant is a constant.
LogicalResult splat_constant(SplatOp op, PatternRewriter& rewriter) {
  mlir::FloatAttr number;
  if (!mlir::matchPattern(op.getValue(), mlir::m_Constant(&number))) return mlir::failure();
  rewriter.replaceOp(op, Ops(rewriter, op.getLoc()).real(number.getValue().convertToFloat(), op.getType()));
  return mlir::success();
}

// An operation on numbers of the row is done once a row: f(splat(s), splat(t)) -> splat(f(s, t)). Matches the splat, of
// which `user` is such an operation.
LogicalResult sink_splat(SplatOp op, PatternRewriter& rewriter) {
  for (mlir::Operation* user : op->getUsers()) {
    if (!user->hasTrait<mlir::OpTrait::Elementwise>() || user->getNumResults() != 1 ||
        user->getResult(0).getType() != op.getType() || !llvm::all_of(user->getOperands(), is_uniform))
      continue;
    rewriter.setInsertionPoint(user);
    Ops ops(rewriter, user->getLoc());
    mlir::SmallVector<Value> operands;
    for (const Value operand : user->getOperands()) operands.push_back(uniform(ops, operand));
    mlir::OperationState state(user->getLoc(), user->getName());
    state.addOperands(operands);
    state.addTypes(rewriter.getF32Type());
    state.addAttributes(user->getAttrs());
    const Value number = rewriter.create(state)->getResult(0);
    rewriter.replaceOpWithNewOp<SplatOp>(user, op.getType(), number);
    return mlir::success();
  }
  return mlir::failure();
}

// (x * s) * t -> x * (s * t) for numbers s and t of the row. Matches the splat t.
LogicalResult gather_factors(SplatOp op, PatternRewriter& rewriter) {
  for (mlir::Operation* user : op->getUsers()) {
    auto outer = mlir::dyn_cast<arith::MulFOp>(user);
    if (!outer) continue;
    const Value inner = outer.getLhs() == op.getResult() ? outer.getRhs() : outer.getLhs();
    const auto parts = scaled(inner);
    if (!parts || is_uniform(parts->first) || !(inner.hasOneUse() || constant_elements(parts->second))) continue;
    rewriter.setInsertionPoint(outer);
    Ops ops(rewriter, outer.getLoc());
    const Value factor = ops.mulf(op.getValue(), uniform(ops, parts->second));
    const Value factors = SplatOp::create(rewriter, outer.getLoc(), op.getType(), factor);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(outer, parts->first, factors);
    return mlir::success();
  }
  return mlir::failure();
}

}  // namespace

void add_reduce_patterns(mlir::RewritePatternSet& patterns) {
  patterns.add(reduce_uniform).add(reduce_negative).add(reduce_scaled);
  patterns.add(reduce_zero, /*benefit=*/2).add(reduce_without_zero, /*benefit=*/2);
  patterns.add(reduce_terms<arith::AddFOp>).add(reduce_terms<arith::SubFOp>);
}

void add_splat_patterns(mlir::RewritePatternSet& patterns) {
  patterns.add(splat_constant).add(sink_splat).add(gather_factors);
}

}  // namespace hstujit::hstu
