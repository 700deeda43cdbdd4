#include "compiler/emit/operand_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "compiler/plan/device_types.h"
#include "compiler/spec/operators/hstu_attention/operands/sums.h"
#include "mlir/IR/OperationSupport.h"

namespace hstujit {

namespace {

std::string member_function(std::string_view type, std::string_view name, std::string_view member) {
  return fmt::format(
      "      template <class P> static __device__ __forceinline__ {} {}(const P& p) {{ return p.{}; }}\n", type, name,
      member);
}

// A member function that is a region function of the score: the derivative with respect to the element of the pair's
// row or column, or to what a site reads; the entry that a site reads.
std::string region_member(std::string_view type, std::string_view name, const std::string& region) {
  return fmt::format(
      "  template <class At> static __device__ __forceinline__ {} {}(float x, const At& at, const Params& params) "
      "{{\n"
      "    return {}(x, at, params);\n  }}\n",
      type, name, region);
}
std::string slope_function(std::string_view name, const std::string& region) {
  return region_member("float", name, region);
}

std::string print_tensor(const Operand& operand, std::string_view name, const std::string& argument) {
  std::string text = fmt::format("    struct {} {{\n", name) + member_function("auto", "data", argument);
  for (const std::string_view stride : operand.kind->strides(operand))
    text += member_function("i64", stride, fmt::format("{}_{}", argument, stride));
  return text + "    };\n";
}

std::string print_tensors(const Operand& operand, bool has_gradient, bool has_before) {
  std::string text = print_tensor(operand, "Tensor", operand.name);
  if (has_gradient) text += print_tensor(operand, "Gradient", operand.gradient_name());
  if (has_before) text += print_tensor(operand, "Before", operand.before_name());
  return text;
}

// Sites read elements that OperandSums lists.
class SitePrinter {
 public:
  SitePrinter(const AttentionSpec& spec, mlir::ModuleOp module, const OperandSums& sums)
      : spec_(spec), module_(module), sums_(sums) {}

  std::string print() {
    std::string text;
    for (const OperandSums::Part& part : sums_.parts) text += print_operand(part);
    for (const OperandSums::Part& part : sums_.parts) {
      for (size_t site = 0; function(score_slope(part.operand->name, site)); ++site) text += print_site(part, site);
    }
    return text + fmt::format(
                      "struct ScoreSites {{\n"
                      "  static constexpr int kTables = {}, kOthers = {}, kMostEntries = {}, kHeadSums = {};\n"
                      "{}{}{}}};\n",
                      sums_.tables, sums_.others, sums_.most_entries, head_sums_.size(),
                      visitor("for_each_operand", operands_), visitor("for_each_head_sum", head_sum_structs_),
                      visitor("for_each_site", sites_));
  }

 private:
  // Sums over the heads of slopes that a kernel has room for in registers.
  static constexpr size_t kMostHeadSums = 2;

  mlir::func::FuncOp function(const std::string& name) { return module_.lookupSymbol<mlir::func::FuncOp>(name); }

  static std::string visitor(std::string_view name, const std::vector<std::string>& structs) {
    std::string calls;
    for (const std::string& each : structs) calls += fmt::format(" body({}());", each);
    return fmt::format("  template <class Body> static __device__ __forceinline__ void {}(const Body&{}) {{{}{}}}\n",
                       name, structs.empty() ? "" : " body", calls, structs.empty() ? "" : " ");
  }

  std::string print_operand(const OperandSums::Part& part) {
    operands_.push_back("ScoreOperand_" + part.operand->name);
    const bool adds = spec_.params().adds_gradients;
    return fmt::format(
        "struct {} {{\n  using Type = {};\n"
        "  static constexpr int kFirst = {}, kEntries = {}, kHeads = {};\n  static constexpr bool kByHead = {}, kAdds "
        "= {};\n{}}};\n",
        operands_.back(), element_struct(part.operand->dtype), part.first, part.entries, part.heads,
        part.operand->kind == &table_kind() && part.operand->heads > 0, adds, print_tensors(*part.operand, true, adds));
  }

  std::string print_site(const OperandSums::Part& part, size_t site) {
    const std::string slope = score_slope(part.operand->name, site), entry = score_entry(part.operand->name, site);
    const bool of_table = part.operand->kind == &table_kind();
    const int head_sum = of_table && part.heads == 1 && !knows_head(function(entry)) ? head_sum_of(slope) : -1;
    std::string text;
    if (head_sum >= 0 && static_cast<size_t>(head_sum) == head_sum_structs_.size()) {
      head_sum_structs_.push_back(fmt::format("ScoreHeadSum_{}", head_sum));
      text += fmt::format("struct {} {{\n  static constexpr int kIndex = {};\n{}}};\n", head_sum_structs_.back(),
                          head_sum, slope_function("slope", slope));
    }
    sites_.push_back(fmt::format("ScoreSite_{}_{}", part.operand->name, site));
    text += fmt::format(
        "struct {} {{\n  static constexpr bool kOfTable = {};\n"
        "  static constexpr int kFirst = {}, kEntries = {}, kGroup = {}, kHeadSum = {};\n",
        sites_.back(), of_table, part.first, part.entries, spec_.params().heads / part.heads, head_sum);
    if (head_sum < 0) text += slope_function("slope", slope);
    if (of_table) text += region_member("int", "entry", entry);
    return text + "};\n";
  }

  // Whether the entry is another one for each head: it follows from the head, or from the product.
  static bool knows_head(mlir::func::FuncOp entry) {
    constexpr unsigned kProduct = 0, kHead = 5;
    bool by_head = !entry.getArgument(kProduct).use_empty() || !entry.getArgument(kHead).use_empty();
    entry.walk([&](hstu::ReadOp read) { by_head = by_head || read.getByHead(); });
    return by_head;
  }

  // The sum over heads that has this slope, a new one where there is room; -1 where there is none.
  int head_sum_of(const std::string& slope) {
    const auto same = [&](const std::string& other) {
      return mlir::OperationEquivalence::isRegionEquivalentTo(&function(slope).getBody(), &function(other).getBody(),
                                                              mlir::OperationEquivalence::IgnoreLocations);
    };
    const auto found = std::ranges::find_if(head_sums_, same);
    if (found == head_sums_.end() && head_sums_.size() == kMostHeadSums) return -1;
    const auto index = found - head_sums_.begin();
    if (found == head_sums_.end()) head_sums_.push_back(slope);
    return static_cast<int>(index);
  }

  const AttentionSpec& spec_;
  mlir::ModuleOp module_;
  const OperandSums& sums_;
  std::vector<std::string> head_sums_;  // slopes
  std::vector<std::string> operands_, head_sum_structs_, sites_;
};

}  // namespace

std::string print_operands(const AttentionSpec& spec, Direction direction) {
  const auto tensors = [&](const Operand* operand) -> std::string {
    if (operand == nullptr) return {};
    const bool gradient = direction == Direction::kBackward && operand->gradient;
    return print_tensors(*operand, gradient, gradient && spec.params().adds_gradients);
  };
  const Operand* const bias = spec.operand(OperandUse::kBias);
  const Operand* const factors = spec.operand(OperandUse::kFactor);
  const bool of_rows = factors != nullptr && factors->kind == &row_kind();
  std::string text = fmt::format("  struct Bias {{\n    static constexpr int kHeads = {};\n{}  }};\n",
                                 bias == nullptr ? 0 : bias->heads, tensors(bias));
  text += fmt::format("  struct Factors {{\n    static constexpr bool kPresent = {}, kOfRows = {};\n{}  }};\n",
                      factors != nullptr, of_rows, tensors(factors));
  return text;
}

std::string print_slopes(const AttentionSpec& spec, mlir::ModuleOp module) {
  std::string text;
  for (const Operand& operand : spec.operands()) {
    if (!operand.has_slopes()) continue;
    const std::string row = score_slope(operand.name, false), column = score_slope(operand.name, true);
    const bool by_row = module.lookupSymbol(row) != nullptr, by_column = module.lookupSymbol(column) != nullptr;
    text += fmt::format(
        "struct {} {{\n  using Type = {};\n"
        "  static constexpr bool kByRow = {}, kByColumn = {}, kByHead = {}, kAdds = {};\n",
        operand.slopes_struct(), element_struct(operand.dtype), by_row, by_column, operand.heads > 0,
        spec.params().adds_gradients);
    if (by_row) text += slope_function("of_row", row);
    if (by_column) text += slope_function("of_column", column);
    text += print_tensors(operand, true, spec.params().adds_gradients) + "};\n";
  }
  return text;
}

std::string print_sites(const AttentionSpec& spec, mlir::ModuleOp module) {
  const OperandSums sums(spec.operands());
  return sums.parts.empty() ? "" : SitePrinter(spec, module, sums).print();
}

}  // namespace hstujit
