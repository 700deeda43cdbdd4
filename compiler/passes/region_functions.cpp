#include "compiler/passes/region_functions.h"

#include <fmt/format.h>

namespace hstujit {

namespace {

constexpr llvm::StringLiteral kNameAttribute = "hstu.name";

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

std::string argument_name(mlir::func::FuncOp function, unsigned index) {
  auto name = function.getArgAttrOfType<mlir::StringAttr>(index, kNameAttribute);
  return name ? name.str() : fmt::format("a{}", index);
}

std::string result_name(mlir::func::FuncOp function, unsigned index) {
  auto name = function.getResultAttrOfType<mlir::StringAttr>(index, kNameAttribute);
  return name ? name.str() : fmt::format("r{}", index);
}

}  // namespace hstujit
