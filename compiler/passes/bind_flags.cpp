// hstu.flag -> constant. Asks the operator around it for an attribute by name, so that a new flag of any operator needs
// no change here.
#include "compiler/ir/hstu.h"
#include "compiler/passes/passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace hstujit {

namespace {

mlir::TypedAttr constant_of(mlir::Builder& builder, mlir::Attribute attribute, mlir::Type type) {
  if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(attribute)) {
    if (type.isIndex() && !integer.getType().isInteger(1)) return builder.getIndexAttr(integer.getInt());
    if (type.isInteger(1) && integer.getType().isInteger(1)) return builder.getBoolAttr(!integer.getValue().isZero());
  }
  if (auto real = mlir::dyn_cast<mlir::FloatAttr>(attribute); real && real.getType() == type) return real;
  return {};
}

struct BindFlags : mlir::PassWrapper<BindFlags, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BindFlags)
  llvm::StringRef getArgument() const final { return "hstu-bind-flags"; }
  llvm::StringRef getDescription() const final { return "replace flags by the attributes of their operator"; }

  void runOnOperation() override {
    const auto result = getOperation().walk([](hstu::FlagOp flag) -> mlir::WalkResult {
      mlir::Operation* owner = flag->getParentOp();
      const std::optional<mlir::Attribute> attribute = owner->getInherentAttr(flag.getName());
      if (!attribute || !*attribute) {
        return flag.emitError() << "flag '" << flag.getName() << "' is no attribute of " << owner->getName();
      }
      mlir::OpBuilder builder(flag);
      const mlir::TypedAttr value = constant_of(builder, *attribute, flag.getType());
      if (!value) {
        return flag.emitError() << "flag '" << flag.getName() << "' has type " << flag.getType() << " and the value "
                                << *attribute;
      }
      flag.replaceAllUsesWith(mlir::arith::ConstantOp::create(builder, flag.getLoc(), value).getResult());
      flag.erase();
      return mlir::WalkResult::advance();
    });
    if (result.wasInterrupted()) signalPassFailure();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> create_bind_flags_pass() { return std::make_unique<BindFlags>(); }

}  // namespace hstujit
