#include "compiler/ir/mask_functions.h"

#include "compiler/expression/derive.h"
#include "compiler/ir/expression.h"
#include "compiler/ir/region_functions.h"

namespace hstujit {

namespace {

// A symbol is the argument of the same name, but for the column.
llvm::StringRef argument_of(const Expression::Symbol& symbol) {
  return symbol.name == "column" ? "col" : llvm::StringRef(symbol.name);
}

void add_function(mlir::OpBuilder& builder, mlir::Location location, llvm::StringRef name,
                  llvm::ArrayRef<llvm::StringRef> arguments, llvm::ArrayRef<llvm::StringRef> results, mlir::Type type,
                  const ExpressionFunction& derived) {
  const mlir::OpBuilder::InsertionGuard guard(builder);
  const mlir::SmallVector<mlir::Type> inputs(arguments.size(), builder.getIndexType());
  const mlir::SmallVector<mlir::Type> outputs(results.size(), type);
  auto function =
      create_region_function(builder, location, name, builder.getFunctionType(inputs, outputs), arguments, results);
  mlir::Block* body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  Ops ops(builder, location);
  const auto values = build_expression(ops, derived.expression, derived.results, [&](const Expression::Symbol& symbol) {
    const auto* const found = llvm::find(arguments, argument_of(symbol));
    return body->getArgument(static_cast<unsigned>(found - arguments.begin()));
  });
  mlir::func::ReturnOp::create(builder, location, values);
}

}  // namespace

void build_mask_functions(mlir::OpBuilder& builder, mlir::Location location, const Expression& mask) {
  const mlir::Type truth = builder.getI1Type(), index = builder.getIndexType(), word = builder.getI32Type();
  const SymbolRange rows = {"row", "r0", "r1"}, columns = {"column", "c0", "c1"}, tile[] = {rows, columns};
  add_function(builder, location, kMaskValid, {"row", "col", "n", "t"}, {"valid"}, truth, {mask, {mask.root()}});
  add_function(builder, location, kMaskTile, {"r0", "r1", "c0", "c1", "n", "t"}, {"full", "visible"}, truth,
               derive_truths(mask, tile));
  add_function(builder, location, kMaskColumns, {"r0", "r1", "n", "t"}, {"lo", "hi"}, index,
               derive_range(mask, "column", rows, "n"));
  add_function(builder, location, kMaskRows, {"c0", "c1", "n", "t"}, {"lo", "hi"}, index,
               derive_range(mask, "row", columns, "n"));
  if (const auto bits = derive_word(mask, "column", "c0")) {
    add_function(builder, location, kMaskRowBits, {"row", "c0", "n", "t"}, {"bits"}, word, *bits);
  }
  if (const auto bits = derive_word(mask, "row", "r0")) {
    add_function(builder, location, kMaskColumnBits, {"col", "r0", "n", "t"}, {"bits"}, word, *bits);
  }
}

}  // namespace hstujit
