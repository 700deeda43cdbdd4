#include "compiler/passes/row_functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/passes/region_functions.h"

namespace hstujit {

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

RowFunctions find_row_functions(mlir::ModuleOp module) {
  RowFunctions functions;
  functions.outputs = module.lookupSymbol<mlir::func::FuncOp>(kRowOutputs);
  for (unsigned round = 0;; ++round) {
    auto summands = module.lookupSymbol<mlir::func::FuncOp>(row_summands_name(round));
    if (!summands) return functions;
    functions.rounds.push_back({summands, module.lookupSymbol<mlir::func::FuncOp>(row_statistics_name(round))});
  }
}

}  // namespace hstujit
