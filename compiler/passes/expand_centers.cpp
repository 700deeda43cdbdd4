// hstu.center -> sums and differences. A mean of large elements is off by the rounding of their sum, which may be more
// than the elements differ by. So there is an estimate first, the mean, and then a correction, the mean of what
// elements differ from the estimate by, which are small numbers.
//
// Sums of products with the centered elements are taken of the differences from the estimate, and corrected afterwards:
// sum((r - c) * y) = sum(r * y) - c * sum(y). So they belong to the round of the correction, and no round is added.
#include "compiler/ir/hstu.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/region_functions.h"
#include "compiler/passes/passes.h"

namespace hstujit {

namespace {

namespace arith = mlir::arith;
using mlir::Value;

// The mean is estimate + correction, rounded to fp32, and a rest, which matters where elements differ by little. A rest
// that is no more than the rounding of the correction is none: elements that are all the same become 0.
constexpr double kNoRest = 0x1p-10;  // of the correction

class Expansion {
 public:
  explicit Expansion(hstu::CenterOp center)
      : builder_(center),
        ops_(builder_, builder_.getUnknownLoc()),
        center_(center),
        ratio_(1.0 / static_cast<double>(center->getParentOfType<hstu::RowOp>().group_width())) {}

  void run() {
    const Value x = center_.getValue();
    const Value estimate = named("estimate", ops_.mulf(reduce(x), ops_.real(ratio_)));
    // Fused with a subtraction, it would be another estimate there.
    estimate.getDefiningOp()->setAttr(kUnfused, builder_.getUnitAttr());
    rough_ = ops_.subf(x, splat(estimate));
    total_ = reduce(rough_);
    correction_ = named("correction", ops_.mulf(total_, ops_.real(ratio_)));
    for (mlir::Operation* const user : sums_of_products()) expand_sum(mlir::cast<hstu::ReduceOp>(user));

    builder_.setInsertionPoint(center_);
    const Value mean = named("mean", ops_.addf(estimate, correction_));
    if (is_bf16(x)) {
      center_.replaceAllUsesWith(ops_.subf(x, splat(mean)));
      center_.erase();
      return;
    }
    const Value rest = ops_.subf(correction_, ops_.subf(mean, estimate));
    const Value least = ops_.mulf(ops_.absf(correction_), ops_.real(kNoRest));
    const Value counted = named("rest", ops_.select(ops_.gtf(ops_.absf(rest), least), rest, ops_.real(0)));
    replace_elements(ops_.subf(x, splat(mean)), counted);
  }

 private:
  Value reduce(Value elements) {
    return hstu::ReduceOp::create(builder_, ops_.location(), builder_.getF32Type(), elements);
  }
  Value splat(Value number) { return hstu::SplatOp::create(builder_, ops_.location(), center_.getType(), number); }
  Value named(llvm::StringRef name, Value value) {
    value.getDefiningOp()->setLoc(mlir::NameLoc::get(builder_.getStringAttr(name)));
    return value;
  }

  // Whether elements are read in bf16: they differ by so much that the mean in fp32 needs no rest.
  static bool is_bf16(Value x) {
    auto argument = mlir::dyn_cast<mlir::BlockArgument>(x);
    auto row = argument ? mlir::dyn_cast<hstu::RowOp>(argument.getOwner()->getParentOp()) : hstu::RowOp();
    return row && mlir::cast<hstu::OperandAttr>(row.getInputs()[argument.getArgNumber()]).getDtype().isBF16();
  }

  // Whether a value is known before anything is summed up.
  static bool is_known(Value value) {
    mlir::Operation* const operation = value.getDefiningOp();
    if (operation == nullptr) return true;
    if (mlir::isa<hstu::ReduceOp, hstu::CenterOp>(operation)) return false;
    return llvm::all_of(operation->getOperands(), is_known);
  }

  // How often the centered elements are a factor of a product, and whether its other factors are known.
  struct Factors {
    int centered = 0;
    bool others = false, known = true;
  };
  void count(Value value, Factors& factors) {
    if (value == center_.getResult()) {
      ++factors.centered;
    } else if (auto product = value.getDefiningOp<arith::MulFOp>()) {
      count(product.getLhs(), factors);
      count(product.getRhs(), factors);
    } else {
      factors.others = true;
      factors.known = factors.known && is_known(value);
    }
  }
  Factors factors_of(hstu::ReduceOp sum) {
    Factors factors;
    count(sum.getValue(), factors);
    return factors;
  }

  // Sums of squares, and of products with what is known.
  llvm::SmallVector<mlir::Operation*> sums_of_products() {
    llvm::SmallVector<mlir::Operation*> sums;
    for (auto sum : center_->getBlock()->getOps<hstu::ReduceOp>()) {
      const Factors factors = factors_of(sum);
      const bool square = factors.centered == 2 && !factors.others;
      if (square || (factors.centered == 1 && factors.others && factors.known)) sums.push_back(sum);
    }
    return sums;
  }

  // A product without the centered elements; null for these themselves.
  Value others_of(Value value) {
    if (value == center_.getResult()) return {};
    auto product = value.getDefiningOp<arith::MulFOp>();
    if (!product) return value;
    const Value a = others_of(product.getLhs()), b = others_of(product.getRhs());
    if (!a || !b) return a ? a : b;
    return a == product.getLhs() && b == product.getRhs() ? value : ops_.mulf(a, b);
  }

  void expand_sum(hstu::ReduceOp sum) {
    builder_.setInsertionPoint(sum);
    const Value y = others_of(sum.getValue());
    if (y) {
      sum.replaceAllUsesWith(ops_.subf(reduce(ops_.mulf(rough_, y)), ops_.mulf(correction_, reduce(y))));
    } else {
      // The difference of two sums may be below 0 by their rounding, where elements are all the same. Of elements whose
      // squares are infinite it is NaN, which goes on.
      const Value squares = ops_.subf(reduce(ops_.mulf(rough_, rough_)), ops_.mulf(correction_, total_));
      sum.replaceAllUsesWith(ops_.max_nan(squares, ops_.real(0)));
    }
    erase_unused(sum);
  }

  // And the products that were made for it.
  void erase_unused(mlir::Operation* operation) {
    if (!operation->use_empty() || operation == center_.getOperation()) return;
    const llvm::SmallVector<Value> operands(operation->getOperands());
    operation->erase();
    for (const Value operand : operands) {
      if (auto product = operand.getDefiningOp<arith::MulFOp>()) erase_unused(product);
    }
  }

  // The elements less the mean, less the rest. Of one product with a number of the row this is a fused operation.
  void replace_elements(Value deviation, Value rest) {
    mlir::Operation* const user = center_->hasOneUse() ? *center_->user_begin() : nullptr;
    if (auto product = mlir::dyn_cast_or_null<arith::MulFOp>(user)) {
      const Value factor = product.getLhs() == center_.getResult() ? product.getRhs() : product.getLhs();
      if (auto number = factor.getDefiningOp<hstu::SplatOp>()) {
        builder_.setInsertionPoint(product);
        const Value shift = ops_.negf(ops_.mulf(rest, number.getValue()));
        product.replaceAllUsesWith(ops_.addf(ops_.mulf(deviation, factor), splat(shift)));
        product.erase();
      }
    }
    if (!center_->use_empty()) center_.replaceAllUsesWith(ops_.subf(deviation, splat(rest)));
    center_.erase();
  }

  mlir::OpBuilder builder_;
  Ops ops_;
  hstu::CenterOp center_;
  double ratio_;
  Value rough_, total_, correction_;
};

struct ExpandCenters : mlir::PassWrapper<ExpandCenters, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandCenters)
  llvm::StringRef getArgument() const final { return "hstu-expand-centers"; }
  llvm::StringRef getDescription() const final { return "replace hstu.center by differences from a corrected mean"; }

  void runOnOperation() override {
    llvm::SmallVector<hstu::CenterOp> centers;
    getOperation().walk([&](hstu::CenterOp center) { centers.push_back(center); });
    for (hstu::CenterOp center : centers) Expansion(center).run();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_expand_centers_pass() { return std::make_unique<ExpandCenters>(); }

}  // namespace hstujit
