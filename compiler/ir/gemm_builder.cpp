#include "compiler/ir/gemm_builder.h"

#include "compiler/ir/hstu.h"

namespace hstujit {

Result<Module> build_gemm(mlir::MLIRContext& context, const GemmSpec& spec, const EpilogueBuilder& epilogue) {
  mlir::OpBuilder builder(&context);
  const mlir::Location location = builder.getUnknownLoc();
  Module module(mlir::ModuleOp::create(location));
  builder.setInsertionPointToEnd(module->getBody());
  Ops ops(builder, location);

  mlir::SmallVector<mlir::StringRef> names;
  for (const GemmOperand& operand : spec.interface().operands) names.push_back(operand.name);
  const bool takes_column = spec.interface().takes_column;
  auto gemm = hstu::GemmOp::create(builder, location, builder.getStrArrayAttr(names), takes_column);
  mlir::SmallVector<mlir::Type> types(names.size() + 1, builder.getF32Type());
  if (takes_column) types.insert(types.begin() + 1, builder.getIndexType());
  mlir::Block* body =
      builder.createBlock(&gemm.getEpilogue(), {}, types, mlir::SmallVector<mlir::Location>(types.size(), location));
  const auto arguments = body->getArguments();
  const std::vector<mlir::Value> operands(arguments.begin() + (takes_column ? 2 : 1), arguments.end());
  hstu::YieldOp::create(builder, location,
                        epilogue(ops, arguments[0], takes_column ? arguments[1] : mlir::Value(), operands));
  return module;
}

}  // namespace hstujit
