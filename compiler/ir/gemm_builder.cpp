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
  auto gemm = hstu::GemmOp::create(builder, location, builder.getStrArrayAttr(names));
  const size_t count = names.size() + 1;
  mlir::Block* body =
      builder.createBlock(&gemm.getEpilogue(), {}, mlir::SmallVector<mlir::Type>(count, builder.getF32Type()),
                          mlir::SmallVector<mlir::Location>(count, location));
  std::vector<mlir::Value> operands;
  for (unsigned i = 1; i < count; ++i) operands.push_back(body->getArgument(i));
  hstu::YieldOp::create(builder, location, epilogue(ops, body->getArgument(0), operands));
  return module;
}

}  // namespace hstujit
