#include "compiler/passes/row_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/ir/region_functions.h"

namespace hstujit {

namespace {

constexpr llvm::StringLiteral kRandomAttribute = "hstu.random";

void add_randoms(mlir::func::FuncOp function, std::vector<RowRandom>& randoms) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto attribute = function.getArgAttrOfType<mlir::DictionaryAttr>(i, kRandomAttribute);
    const std::string name = argument_name(function, i);
    const bool known =
        std::any_of(randoms.begin(), randoms.end(), [&](const RowRandom& random) { return random.name == name; });
    if (!attribute || known) continue;
    randoms.push_back(
        {name, attribute.getAs<mlir::StringAttr>("seed").str(), attribute.getAs<mlir::StringAttr>("offset").str(),
         attribute.getAs<mlir::IntegerAttr>("columns").getInt(), attribute.getAs<mlir::IntegerAttr>("first").getInt()});
  }
}

// Adds the operations of a function that its results of certain names depend on, and gives the names of its arguments
// among what these depend on.
std::set<std::string> add_slice(mlir::func::FuncOp function, const std::set<std::string>& results,
                                llvm::DenseSet<mlir::Operation*>& slice) {
  std::set<std::string> arguments;
  llvm::SmallVector<mlir::Value> open;
  mlir::Operation* const end = function.getBody().front().getTerminator();
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (results.contains(result_name(function, i))) open.push_back(end->getOperand(i));
  }
  while (!open.empty()) {
    const mlir::Value value = open.pop_back_val();
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
      arguments.insert(argument_name(function, argument.getArgNumber()));
    } else if (slice.insert(value.getDefiningOp()).second) {
      llvm::append_range(open, value.getDefiningOp()->getOperands());
    }
  }
  return arguments;
}

}  // namespace

std::string row_summands_name(unsigned round) { return fmt::format("row_summands{}", round); }
std::string row_statistics_name(unsigned round) { return fmt::format("row_statistics{}", round); }
std::string row_sum_name(unsigned index) { return fmt::format("sum{}", index); }

std::vector<std::string> RowFunctions::statistics() const {
  std::vector<std::string> names;
  for (const RowRound& round : rounds) {
    mlir::func::FuncOp function = round.statistics;
    for (unsigned i = 0; i < function.getNumResults(); ++i) names.push_back(result_name(function, i));
  }
  return names;
}

unsigned RowFunctions::max_sums() const {
  unsigned max = 0;
  for (const RowRound& round : rounds) {
    mlir::func::FuncOp function = round.summands;
    max = std::max(max, function.getNumResults());
  }
  return max;
}

llvm::DenseSet<mlir::Operation*> operations_of(const RowFunctions& functions, const std::vector<std::string>& outputs) {
  llvm::DenseSet<mlir::Operation*> slice;
  std::set<std::string> needed = add_slice(functions.outputs, {outputs.begin(), outputs.end()}, slice);
  for (const RowRound& round : llvm::reverse(functions.rounds)) {
    needed.merge(add_slice(round.statistics, needed, slice));
    std::set<std::string> sums;
    for (unsigned i = 0; i < mlir::func::FuncOp(round.summands).getNumResults(); ++i) {
      // Names of sums are those of a round.
      if (needed.erase(row_sum_name(i)) > 0) sums.insert(row_sum_name(i));
    }
    needed.merge(add_slice(round.summands, sums, slice));
  }
  return slice;
}

void set_row_random(mlir::func::FuncOp function, unsigned argument, const RowRandom& random) {
  mlir::Builder builder(function.getContext());
  const mlir::NamedAttribute entries[] = {builder.getNamedAttr("seed", builder.getStringAttr(random.seed)),
                                          builder.getNamedAttr("offset", builder.getStringAttr(random.offset)),
                                          builder.getNamedAttr("columns", builder.getI64IntegerAttr(random.columns)),
                                          builder.getNamedAttr("first", builder.getI64IntegerAttr(random.first))};
  function.setArgAttr(argument, kRandomAttribute, builder.getDictionaryAttr(entries));
}

RowFunctions find_row_functions(mlir::ModuleOp module) {
  RowFunctions functions;
  functions.outputs = module.lookupSymbol<mlir::func::FuncOp>(kRowOutputs);
  if (!functions.outputs) return functions;
  for (unsigned round = 0;; ++round) {
    auto summands = module.lookupSymbol<mlir::func::FuncOp>(row_summands_name(round));
    if (!summands) break;
    functions.rounds.push_back({summands, module.lookupSymbol<mlir::func::FuncOp>(row_statistics_name(round))});
    add_randoms(summands, functions.randoms);
  }
  add_randoms(functions.outputs, functions.randoms);
  functions.index = module.lookupSymbol<mlir::func::FuncOp>(kRowIndex);
  return functions;
}

}  // namespace hstujit
