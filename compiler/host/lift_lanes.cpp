#include "compiler/host/lift_lanes.h"

#include <fmt/format.h>

#include "compiler/ir/hstu.h"
#include "mlir/IR/IRMapping.h"

namespace hstujit {

namespace {

bool is_lanes(mlir::Value value) { return mlir::isa<mlir::VectorType>(value.getType()); }

mlir::Type lanes_type(Emitter& emit, mlir::Type scalar) {
  return emit.lanes_of(scalar.isIndex() ? emit.builder().getI32Type() : scalar);
}

}  // namespace

Result<mlir::func::FuncOp> find_region_function(mlir::ModuleOp module, llvm::StringRef name) {
  auto function = module.lookupSymbol<mlir::func::FuncOp>(name);
  if (!function || !function.getBody().hasOneBlock()) {
    return Status(Code::kInternal, fmt::format("the operator's IR has no function {} of one block", name.str()));
  }
  return function;
}

Result<Emitter::Values> emit_region(Emitter& emit, mlir::func::FuncOp function, const Emitter::Values& arguments,
                                    const ReadEmitter& read) {
  mlir::Block& block = function.getBody().front();
  mlir::IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (mlir::Operation& operation : block.without_terminator()) {
    if (operation.getNumRegions() != 0) {
      return Status(Code::kUnsupported, fmt::format("the host backend cannot compute {} inside a region function",
                                                    operation.getName().getStringRef().str()));
    }
    if (auto round = mlir::dyn_cast<hstu::RoundOp>(operation)) {
      const mlir::Value lanes = emit.broadcast(mapping.lookup(round.getValue()));
      const DataType dtype = round.getDtype().isBF16() ? DataType::kBf16 : DataType::kFp16;
      mapping.map(round.getResult(), emit.rounded(lanes, dtype));
      continue;
    }
    if (auto read_op = mlir::dyn_cast<hstu::ReadOp>(operation); read_op && read) {
      mapping.map(read_op.getValue(), read(read_op, mapping.lookup(read_op.getPosition())));
      continue;
    }
    const bool over_lanes =
        llvm::any_of(operation.getOperands(), [&](mlir::Value operand) { return is_lanes(mapping.lookup(operand)); });
    if (!over_lanes) {
      emit.builder().clone(operation, mapping);
      continue;
    }
    // Lanes of indices are i32 already.
    if (auto cast = mlir::dyn_cast<mlir::arith::IndexCastOp>(operation);
        cast && (cast.getType().isInteger(32) || cast.getIn().getType().isInteger(32))) {
      mapping.map(operation.getResult(0), mapping.lookup(operation.getOperand(0)));
      continue;
    }
    if (auto cast = mlir::dyn_cast<mlir::arith::IndexCastOp>(operation)) {
      const mlir::Value from = mapping.lookup(cast.getIn());
      const mlir::Type to = lanes_type(emit, cast.getType());
      mapping.map(cast.getResult(),
                  cast.getType().isIndex()
                      ? mlir::arith::TruncIOp::create(emit.builder(), emit.location(), to, from).getResult()
                      : mlir::arith::ExtSIOp::create(emit.builder(), emit.location(), to, from).getResult());
      continue;
    }
    if (!operation.hasTrait<mlir::OpTrait::Elementwise>()) {
      return Status(Code::kUnsupported, fmt::format("the host backend cannot compute {} on several elements at once",
                                                    operation.getName().getStringRef().str()));
    }
    mlir::IRMapping widened;
    for (mlir::Value operand : operation.getOperands()) widened.map(operand, emit.broadcast(mapping.lookup(operand)));
    mlir::Operation* clone = emit.builder().clone(operation, widened);
    for (auto [from, to] : llvm::zip(operation.getResults(), clone->getResults())) {
      to.setType(lanes_type(emit, from.getType()));
      mapping.map(from, to);
    }
  }
  Emitter::Values results;
  for (mlir::Value result : block.getTerminator()->getOperands()) results.push_back(mapping.lookup(result));
  return results;
}

}  // namespace hstujit
