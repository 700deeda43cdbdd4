#include "compiler/ir/region_functions.h"

#include <fmt/format.h>

#include "compiler/ir/hstu.h"

namespace hstujit {

namespace {

constexpr llvm::StringLiteral kNameAttribute = "hstu.name";

bool is_of_score(mlir::BlockArgument argument) {
  auto function = mlir::dyn_cast<mlir::func::FuncOp>(argument.getOwner()->getParentOp());
  return function && function.getName().starts_with(kScore);
}

}  // namespace

mlir::func::FuncOp create_region_function(mlir::OpBuilder& builder, mlir::Location location, llvm::StringRef name,
                                          mlir::FunctionType type, llvm::ArrayRef<llvm::StringRef> arguments,
                                          llvm::ArrayRef<llvm::StringRef> results) {
  auto function = mlir::func::FuncOp::create(builder, location, name, type);
  for (size_t i = 0; i < arguments.size(); ++i) {
    function.setArgAttr(static_cast<unsigned>(i), kNameAttribute, builder.getStringAttr(arguments[i]));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    function.setResultAttr(static_cast<unsigned>(i), kNameAttribute, builder.getStringAttr(results[i]));
  }
  return function;
}

bool is_pair_argument(mlir::BlockArgument argument) {
  return is_of_score(argument) && argument.getArgNumber() > 0 &&
         argument.getArgNumber() < hstu::AttentionOp::kFirstScalar;
}

bool is_launch_scalar(mlir::BlockArgument argument) {
  if (!is_of_score(argument) || argument.getArgNumber() < hstu::AttentionOp::kFirstScalar) return false;
  auto function = mlir::cast<mlir::func::FuncOp>(argument.getOwner()->getParentOp());
  const bool takes_value = function.getName() == kScoreOfValue || function.getName() == kValueSlope;
  return !takes_value || argument.getArgNumber() + 1 < function.getNumArguments();
}

std::string score_slope(llvm::StringRef operand, bool of_column) {
  return fmt::format("{}_{}_{}", kScoreSlope.str(), operand.str(), of_column ? "col" : "row");
}

std::string score_slope(llvm::StringRef operand, size_t site) {
  return fmt::format("{}_{}_{}", kScoreSlope.str(), operand.str(), site);
}

std::string score_entry(llvm::StringRef operand, size_t site) {
  return fmt::format("{}_{}_{}", kScoreEntry.str(), operand.str(), site);
}

std::string score_share(llvm::StringRef operand, size_t site) {
  return fmt::format("{}_{}_{}", kScoreShare.str(), operand.str(), site);
}

std::string value_share(llvm::StringRef operand, size_t site) {
  return fmt::format("{}_share_{}_{}", kValueSite.str(), operand.str(), site);
}

std::string value_entry(llvm::StringRef operand, size_t site) {
  return fmt::format("{}_entry_{}_{}", kValueSite.str(), operand.str(), site);
}

bool masks_take_contexts(mlir::ModuleOp module) {
  constexpr unsigned kWithoutContexts = 4;  // row, col, n, t
  auto mask = module.lookupSymbol<mlir::func::FuncOp>(kMaskValid);
  return mask && mask.getNumArguments() > kWithoutContexts;
}

std::string argument_name(mlir::func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<mlir::StringAttr>(index, kNameAttribute);
  return name ? name.str() : fmt::format("a{}", index);
}

std::string result_name(mlir::func::FuncOp function, unsigned index) {
  auto name = function.getResultAttrOfType<mlir::StringAttr>(index, kNameAttribute);
  return name ? name.str() : fmt::format("r{}", index);
}

}  // namespace hstujit
