// score -> score_grad, score_slope_*, score_share_* and score_entry_*: forward-mode differentiation with respect to x,
// and to elements of operands; which entry of a table it reads. score_value and score_of_value -> score_value_*.
#include <array>
#include <optional>

#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/differentiator.h"
#include "compiler/passes/passes.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace hstujit {

namespace {

using Seeds = llvm::SmallVector<mlir::Value>;

// A function over the score's arguments, whose body is to be written at the builder's place.
mlir::Block* add_function(mlir::OpBuilder& builder, mlir::func::FuncOp score, llvm::StringRef name,
                          llvm::ArrayRef<mlir::Type> types, llvm::ArrayRef<llvm::StringRef> names) {
  builder.setInsertionPointToEnd(score->getBlock());
  auto function = create_region_function(builder, score.getLoc(), name,
                                         builder.getFunctionType(score.getArgumentTypes(), types), {}, names);
  // None where nobody has named them.
  if (const mlir::ArrayAttr arguments = score.getAllArgAttrs()) function.setAllArgAttrs(arguments);
  mlir::Block* body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  return body;
}

// A function that returns the score, if asked for, and its derivative with respect to the seeds; or that of `of`, a
// value that it is made of. Fails where an operation has none.
mlir::LogicalResult differentiate(mlir::func::FuncOp score, llvm::StringRef name, const Seeds& seeds, bool with_score,
                                  mlir::Value of = {}) {
  mlir::OpBuilder builder(score);
  const mlir::Type real = builder.getF32Type();
  const llvm::SmallVector<mlir::Type> types(with_score ? 2 : 1, real);
  const llvm::SmallVector<llvm::StringRef> names = {"y", "dy"};
  mlir::Block* body = add_function(builder, score, name, types, llvm::ArrayRef(names).take_back(types.size()));
  Ops ops(builder, score.getLoc());
  mlir::Block& source = score.getBody().front();
  Differentiator differentiator(ops, source, *body);
  for (const mlir::Value seed : seeds) differentiator.seed(seed, {Derivative::Kind::kOne, {}});
  for (mlir::Operation& operation : source.without_terminator()) {
    if (!differentiator.visit(operation)) return operation.emitError() << "has no derivative";
  }
  const mlir::Value y = source.getTerminator()->getOperand(0);
  llvm::SmallVector<mlir::Value> results;
  if (with_score) results.push_back(differentiator.value(y));
  results.push_back(differentiator.derivative(of ? of : y));
  mlir::func::ReturnOp::create(builder, score.getLoc(), results);
  return mlir::success();
}

// A function that returns which entry the score reads at `position`.
void find_entry(mlir::func::FuncOp score, llvm::StringRef name, mlir::Value position, int64_t entries) {
  mlir::OpBuilder builder(score);
  mlir::Block* body = add_function(builder, score, name, {builder.getIndexType()}, {"entry"});
  mlir::IRMapping copies;
  copies.map(score.getArguments(), body->getArguments());
  for (mlir::Operation& operation : score.getBody().front().without_terminator()) builder.clone(operation, copies);
  Ops ops(builder, score.getLoc());
  const mlir::Value entry = ops.max(ops.min(copies.lookup(position), ops.integer(entries - 1)), ops.integer(0));
  mlir::func::ReturnOp::create(builder, score.getLoc(), entry);
}

// The sum that alpha * x enters before anything else becomes of it.
struct SumOfX {
  mlir::Value x, sum;
};

// Nothing where x is used in several places, or subtracted.
std::optional<SumOfX> find_sum_of_x(mlir::func::FuncOp score) {
  const mlir::Value dot = score.getArgument(0);
  if (!dot.hasOneUse()) return std::nullopt;
  auto scaled = llvm::dyn_cast<mlir::arith::MulFOp>(*dot.user_begin());
  if (!scaled) return std::nullopt;
  const auto alpha = llvm::dyn_cast<mlir::BlockArgument>(scaled.getLhs() == dot ? scaled.getRhs() : scaled.getLhs());
  if (!alpha || !is_launch_scalar(alpha)) return std::nullopt;
  SumOfX found{scaled.getResult(), scaled.getResult()};
  while (found.sum.hasOneUse()) {
    mlir::Operation* const user = *found.sum.user_begin();
    const bool subtracts = llvm::isa<mlir::arith::SubFOp>(user) && user->getOperand(0) == found.sum;
    if (!llvm::isa<mlir::arith::AddFOp>(user) && !subtracts) break;
    found.sum = user->getResult(0);
  }
  return found;
}

// Whether the score depends on what is read by way of the sum alone.
bool add_to(mlir::Value sum, mlir::func::FuncOp score, const llvm::DenseSet<mlir::Value>& read) {
  llvm::DenseSet<mlir::Value> others = read;
  mlir::Block& body = score.getBody().front();
  for (mlir::Operation& operation : body.without_terminator()) {
    const bool depends = llvm::any_of(operation.getOperands(), [&](mlir::Value x) { return others.contains(x); });
    if (depends && operation.getResult(0) != sum) others.insert(operation.getResult(0));
  }
  return !others.contains(body.getTerminator()->getOperand(0));
}

// A table, an element of a head or a scalar that the score reads: which values, by the positions where it does.
struct Sites {
  bool of_table = false;
  int64_t entries = 0;
  llvm::MapVector<mlir::Value, Seeds> values;
};

// What the score reads with a gradient that is a sum over all pairs, operand by operand.
using SitesOfOperands = llvm::MapVector<llvm::StringRef, Sites>;

bool is_site(hstu::ReadOp read) {
  return read.getDifferentiable() && !read.is_of(sequence_kind().name) && !read.is_of(pair_kind().name) &&
         !read.is_of(row_kind().name);
}

SitesOfOperands find_sites(mlir::func::FuncOp score) {
  SitesOfOperands found;
  for (hstu::ReadOp read : score.getOps<hstu::ReadOp>()) {
    if (!is_site(read)) continue;
    Sites& sites = found[read.getOperand()];
    sites.of_table = read.is_of(table_kind().name);
    sites.entries = read.getEntries();
    sites.values[sites.of_table ? read.getPosition() : mlir::Value()].push_back(read.getValue());
  }
  return found;
}

// The derivative of `rest` with respect to its last argument, the value, and those of `value` with respect to what it
// reads. Nothing where `rest` reads with a gradient, too.
mlir::LogicalResult differentiate_value(mlir::func::FuncOp value, mlir::func::FuncOp rest) {
  const SitesOfOperands all = find_sites(value);
  if (all.empty() || !find_sites(rest).empty()) return mlir::success();
  if (failed(differentiate(rest, kValueSlope, {rest.getArguments().back()}, false))) return mlir::failure();
  for (const auto& [operand, sites] : all) {
    size_t site = 0;
    for (const auto& [position, seeds] : sites.values) {
      if (failed(differentiate(value, value_share(operand, site), seeds, false))) return mlir::failure();
      if (sites.of_table) find_entry(value, value_entry(operand, site), position, sites.entries);
      ++site;
    }
  }
  return mlir::success();
}

struct Differentiate : mlir::PassWrapper<Differentiate, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Differentiate)
  llvm::StringRef getArgument() const final { return "hstu-differentiate"; }
  llvm::StringRef getDescription() const final {
    return "derive score_grad, score_slope_*, score_share_* and score_entry_* from score";
  }

  void runOnOperation() override {
    auto score = getOperation().lookupSymbol<mlir::func::FuncOp>(kScore);
    if (!score) return;
    if (failed(differentiate(score, kScoreGrad, {score.getArgument(0)}, true))) return signalPassFailure();
    // Values read of each operand at the pair's row, and at its column; of a sequence and a pair, all are of the row.
    llvm::MapVector<llvm::StringRef, std::array<Seeds, 2>> reads;
    const SitesOfOperands others = find_sites(score);
    const mlir::Value row = score.getArgument(1), column = score.getArgument(2);
    for (hstu::ReadOp read : score.getOps<hstu::ReadOp>()) {
      if (!read.getDifferentiable() || is_site(read)) continue;
      if (read.is_of(sequence_kind().name) || read.is_of(pair_kind().name)) {
        reads[read.getOperand()][0].push_back(read.getValue());
        continue;
      }
      if (read.getPosition() != row && read.getPosition() != column) {
        read.emitError() << "reads " << read.getOperand() << ", whose gradient is asked for, at a position that is "
                         << "neither the row nor the column of the pair";
        return signalPassFailure();
      }
      reads[read.getOperand()][read.getPosition() == column ? 1 : 0].push_back(read.getValue());
    }
    for (const auto& [operand, places] : reads) {
      for (const bool of_column : {false, true}) {
        const Seeds& seeds = places[of_column ? 1 : 0];
        if (seeds.empty()) continue;
        if (failed(differentiate(score, score_slope(operand, of_column), seeds, false))) return signalPassFailure();
      }
    }
    const std::optional<SumOfX> sum_of_x = find_sum_of_x(score);
    llvm::DenseSet<mlir::Value> read;
    for (const auto& [operand, sites] : others) {
      for (const auto& [position, seeds] : sites.values) read.insert(seeds.begin(), seeds.end());
    }
    const bool shares = sum_of_x && !read.empty() && add_to(sum_of_x->sum, score, read);
    if (shares && failed(differentiate(score, kScoreGradX, {sum_of_x->x}, true))) return signalPassFailure();
    for (const auto& [operand, sites] : others) {
      size_t site = 0;
      for (const auto& [position, seeds] : sites.values) {
        if (failed(differentiate(score, score_slope(operand, site), seeds, false))) return signalPassFailure();
        if (shares && failed(differentiate(score, score_share(operand, site), seeds, false, sum_of_x->sum)))
          return signalPassFailure();
        if (sites.of_table) find_entry(score, score_entry(operand, site), position, sites.entries);
        ++site;
      }
    }
    auto value = getOperation().lookupSymbol<mlir::func::FuncOp>(kScoreValue);
    auto rest = getOperation().lookupSymbol<mlir::func::FuncOp>(kScoreOfValue);
    if (value && rest && failed(differentiate_value(value, rest))) return signalPassFailure();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_differentiate_pass() { return std::make_unique<Differentiate>(); }

}  // namespace hstujit
