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

void build_mask_functions(mlir::OpBuilder& builder, mlir::Location location, const Expression& mask, bool contexts) {
  const auto add = [&](llvm::StringRef name, mlir::SmallVector<llvm::StringRef> arguments,
                       llvm::ArrayRef<llvm::StringRef> results, mlir::Type type, const ExpressionFunction& derived) {
    arguments.append({"n", kTargetsArgument});
    if (contexts) arguments.push_back(kContextsArgument);
    add_function(builder, location, name, arguments, results, type, derived);
  };
  const mlir::Type truth = builder.getI1Type(), index = builder.getIndexType(), word = builder.getI32Type();
  const SymbolRange rows = {"row", "r0", "r1"}, columns = {"column", "c0", "c1"}, tile[] = {rows, columns};
  add(kMaskValid, {"row", "col"}, {"valid"}, truth, {mask, {mask.root()}});
  add(kMaskTile, {"r0", "r1", "c0", "c1"}, {"full", "visible"}, truth, derive_truths(mask, tile));
  add(kMaskColumns, {"r0", "r1"}, {"lo", "hi"}, index, derive_range(mask, "column", rows, "n"));
  add(kMaskRows, {"c0", "c1"}, {"lo", "hi"}, index, derive_range(mask, "row", columns, "n"));
  if (const auto bits = derive_word(mask, "column", "c0")) add(kMaskRowBits, {"row", "c0"}, {"bits"}, word, *bits);
  if (const auto bits = derive_word(mask, "row", "r0")) add(kMaskColumnBits, {"col", "r0"}, {"bits"}, word, *bits);
}

}  // namespace hstujit
