#include "compiler/ir/mask_functions.h"

#include "compiler/expression/derive.h"
#include "compiler/ir/expression.h"
#include "compiler/ir/region_functions.h"
#include "compiler/ir/scores.h"

namespace hstujit {

namespace {

// A symbol is the argument of the same name, but for the column.
llvm::StringRef argument_of(const Expression::Symbol& symbol) {
  return symbol.name == "column" ? "col" : llvm::StringRef(symbol.name);
}

using BuildBody = std::function<mlir::SmallVector<mlir::Value>(Ops& ops, mlir::Block& body)>;

void add_function(mlir::OpBuilder& builder, mlir::Location location, llvm::StringRef name,
                  llvm::ArrayRef<llvm::StringRef> arguments, llvm::ArrayRef<llvm::StringRef> results, mlir::Type type,
                  const BuildBody& build) {
  const mlir::OpBuilder::InsertionGuard guard(builder);
  const mlir::SmallVector<mlir::Type> inputs(arguments.size(), builder.getIndexType());
  const mlir::SmallVector<mlir::Type> outputs(results.size(), type);
  auto function =
      create_region_function(builder, location, name, builder.getFunctionType(inputs, outputs), arguments, results);
  mlir::Block* body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  Ops ops(builder, location);
  const auto values = build(ops, *body);
  mlir::func::ReturnOp::create(builder, location, values);
}

// Values that the function derives from its arguments.
mlir::SmallVector<mlir::Value> build_derived(Ops& ops, mlir::Block& body, llvm::ArrayRef<llvm::StringRef> arguments,
                                             const ExpressionFunction& derived) {
  const auto values = build_expression(ops, derived.expression, derived.results, [&](const Expression::Symbol& symbol) {
    const auto* const found = llvm::find(arguments, argument_of(symbol));
    return body.getArgument(static_cast<unsigned>(found - arguments.begin()));
  });
  return {values.begin(), values.end()};
}

}  // namespace

void build_mask_functions(mlir::OpBuilder& builder, mlir::Location location, const Expression& mask, bool contexts,
                          const std::vector<Operand>& operands, const ReadingMask* reading) {
  const auto with_counts = [&](mlir::SmallVector<llvm::StringRef> arguments) {
    arguments.append({"n", kTargetsArgument});
    if (contexts) arguments.push_back(kContextsArgument);
    return arguments;
  };
  const auto add = [&](llvm::StringRef name, const mlir::SmallVector<llvm::StringRef>& own,
                       llvm::ArrayRef<llvm::StringRef> results, mlir::Type type, const ExpressionFunction& derived) {
    const auto arguments = with_counts(own);
    add_function(builder, location, name, arguments, results, type,
                 [&](Ops& ops, mlir::Block& body) { return build_derived(ops, body, arguments, derived); });
  };
  const mlir::Type truth = builder.getI1Type(), index = builder.getIndexType(), word = builder.getI32Type();
  const SymbolRange rows = {"row", "r0", "r1"}, columns = {"column", "c0", "c1"}, tile[] = {rows, columns};
  if (reading == nullptr) {
    add(kMaskValid, {"row", "col"}, {"valid"}, truth, {mask, {mask.root()}});
    add(kMaskTile, {"r0", "r1", "c0", "c1"}, {"full", "visible"}, truth, derive_truths(mask, tile));
  } else {
    const auto of_pair = with_counts({"row", "col"}), of_tile = with_counts({"r0", "r1", "c0", "c1"});
    add_function(builder, location, kMaskValid, of_pair, {"valid"}, truth, [&](Ops& ops, mlir::Block& body) {
      ScoreArguments arguments;
      arguments.row = body.getArgument(0), arguments.col = body.getArgument(1), arguments.n = body.getArgument(2);
      arguments.t = body.getArgument(3);
      for (const Operand& operand : operands) arguments.operands.emplace(operand.name, operand);
      return mlir::SmallVector<mlir::Value>{build_condition(ops, reading->exact, arguments)};
    });
    add_function(builder, location, kMaskTile, of_tile, {"full", "visible"}, truth, [&](Ops& ops, mlir::Block& body) {
      const auto least = build_derived(ops, body, of_tile, derive_truths(reading->least, tile));
      const auto most = build_derived(ops, body, of_tile, derive_truths(mask, tile));
      return mlir::SmallVector<mlir::Value>{least[0], most[1]};
    });
  }
  add(kMaskColumns, {"r0", "r1"}, {"lo", "hi"}, index, derive_range(mask, "column", rows, "n"));
  add(kMaskRows, {"c0", "c1"}, {"lo", "hi"}, index, derive_range(mask, "row", columns, "n"));
  if (reading != nullptr) return;
  if (const auto bits = derive_word(mask, "column", "c0")) add(kMaskRowBits, {"row", "c0"}, {"bits"}, word, *bits);
  if (const auto bits = derive_word(mask, "row", "r0")) add(kMaskColumnBits, {"col", "r0"}, {"bits"}, word, *bits);
}

}  // namespace hstujit
