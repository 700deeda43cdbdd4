// Sums of several terms, each in an order that lets the compiler contract every product with an addition:
// (a * b + c * d) + e costs a multiplication and an addition besides one fused operation, a * b + (c * d + e) two fused
// ones. A kernel's formula is evaluated for each element, so this is a part of its time.
#include <algorithm>

#include "compiler/passes/passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace hstujit {

namespace {

namespace arith = mlir::arith;
using mlir::Value;

// Only what is used nowhere else is taken apart.
void flatten(Value value, bool root, llvm::SmallVectorImpl<Value>& terms) {
  auto sum = value.getDefiningOp<arith::AddFOp>();
  if (!sum || (!root && !value.hasOneUse())) {
    terms.push_back(value);
    return;
  }
  flatten(sum.getLhs(), false, terms);
  flatten(sum.getRhs(), false, terms);
}

bool is_term_of_sum(arith::AddFOp sum) {
  const Value value = sum.getResult();
  return value.hasOneUse() && mlir::isa<arith::AddFOp>(*value.user_begin());
}

struct ChainProducts : mlir::PassWrapper<ChainProducts, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChainProducts)
  llvm::StringRef getArgument() const final { return "hstu-chain-products"; }
  llvm::StringRef getDescription() const final { return "order sums so that each product is fused with an addition"; }

  void runOnOperation() override {
    llvm::SmallVector<arith::AddFOp> sums;
    getOperation().walk([&](arith::AddFOp sum) {
      if (!is_term_of_sum(sum)) sums.push_back(sum);
    });
    for (arith::AddFOp sum : sums) chain(sum);
  }

  static void chain(arith::AddFOp sum) {
    llvm::SmallVector<Value> terms;
    flatten(sum.getResult(), true, terms);
    if (terms.size() < 3) return;
    const auto is_product = [](Value term) { return term.hasOneUse() && term.getDefiningOp<arith::MulFOp>(); };
    const auto products =
        std::stable_partition(terms.begin(), terms.end(), [&](Value term) { return !is_product(term); });
    if (products == terms.end()) return;
    mlir::OpBuilder builder(sum);
    Value total = terms.front();
    for (const Value term : llvm::drop_begin(terms)) total = arith::AddFOp::create(builder, sum.getLoc(), term, total);
    sum.getResult().replaceAllUsesWith(total);
    // Its terms lose their uses one by one.
    llvm::SmallVector<mlir::Operation*> unused = {sum};
    while (!unused.empty()) {
      mlir::Operation* const operation = unused.pop_back_val();
      if (!operation->use_empty()) continue;
      const llvm::SmallVector<Value> operands(operation->getOperands());
      operation->erase();
      for (const Value operand : operands) {
        if (auto inner = operand.getDefiningOp<arith::AddFOp>(); inner && inner->use_empty()) unused.push_back(inner);
      }
    }
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_chain_products_pass() { return std::make_unique<ChainProducts>(); }

}  // namespace hstujit
