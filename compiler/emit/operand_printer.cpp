#include "compiler/emit/operand_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/ir/hstu.h"
#include "compiler/ir/region_functions.h"
#include "compiler/plan/device_types.h"
#include "compiler/spec/operators/hstu_attention/operands/sums.h"
#include "mlir/IR/Matchers.h"
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
  const std::string member = operand.member(argument);
  std::string text = fmt::format("    struct {} {{\n", name) + member_function("auto", "data", member);
  for (const std::string_view stride : operand.kind->strides(operand))
    text += member_function("i64", stride, fmt::format("{}_{}", member, stride));
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
    std::vector<std::string> head_sums;
    if (!head_sum_.empty()) {
      head_sums.emplace_back("ScoreHeadSum");
      text += fmt::format("struct {} {{\n{}}};\n", head_sums[0], slope_function("slope", head_sum_));
    }
    text += fmt::format(
        "struct ScoreSites {{\n"
        "  static constexpr int kOperands = {}, kTables = {}, kOthers = {}, kMostEntries = {}, kSites = {};\n"
        "  static constexpr bool kSumsHeads = {};\n",
        sums_.parts.size(), sums_.tables, sums_.others, sums_.most_entries, sites_.size() + summed_sites_.size(),
        sums_.sums_heads);
    text += visitor("for_each_operand", operands_) + visitor("for_each_head_sum", head_sums) +
            visitor("for_each_site", sites_) + visitor("for_each_summed_site", summed_sites_) + "};\n";
    return spec_.shares_sites() ? text + print_value_sites() : text;
  }

 private:
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
        "  static constexpr int kNumber = {}, kFirst = {}, kEntries = {}, kHeads = {};\n"
        "  static constexpr bool kByHead = {}, kAdds = {};\n{}}};\n",
        operands_.back(), element_struct(part.operand->dtype), operands_.size() - 1, part.first, part.entries,
        part.heads, part.operand->kind == &table_kind() && part.operand->heads > 0, adds,
        print_tensors(*part.operand, true, adds));
  }

  std::string print_site(const OperandSums::Part& part, size_t site) {
    const std::string slope = score_slope(part.operand->name, site), entry = score_entry(part.operand->name, site);
    const bool of_table = part.operand->kind == &table_kind();
    const bool summed = !spec_.shares_sites() && of_table && part.operand->heads == 0 && !knows_head(function(entry)) &&
                        is_head_sum(slope);
    const std::string name = fmt::format("ScoreSite_{}_{}", part.operand->name, site);
    (summed ? summed_sites_ : sites_).push_back(name);
    std::string text = fmt::format(
        "struct {} {{\n  static constexpr bool kOfTable = {};\n"
        "  static constexpr int kFirst = {}, kEntries = {}, kGroup = {};\n",
        name, of_table, part.first, part.entries, spec_.params().heads / part.heads);
    if (!summed && !spec_.shares_sites()) text += slope_function("slope", slope);
    if (const std::string share = score_share(part.operand->name, site); function(share)) {
      text += fmt::format("  static constexpr bool kShareIsOne = {}, kReads = {};\n", returns_one(function(share)),
                          of_table && reads(function(entry)));
      text += slope_function("share", share);
    }
    if (of_table) text += region_member("int", "entry", entry);
    return text + "};\n";
  }

  // The sites in the part of the score that heads share, and what that part's derivative is multiplied by.
  std::string print_value_sites() {
    std::string text;
    std::vector<std::string> sites;
    for (const OperandSums::Part& part : sums_.parts) {
      for (size_t site = 0; function(value_share(part.operand->name, site)); ++site) {
        const std::string share = value_share(part.operand->name, site);
        const bool of_table = part.operand->kind == &table_kind();
        sites.push_back(fmt::format("ScoreValueSite_{}_{}", part.operand->name, site));
        text += fmt::format(
            "struct {} {{\n  static constexpr bool kOfTable = {}, kShareIsOne = {};\n  static constexpr int kFirst = "
            "{};\n",
            sites.back(), of_table, returns_one(function(share)), part.first);
        text += slope_function("share", share);
        if (of_table) text += region_member("int", "entry", value_entry(part.operand->name, site));
        text += "};\n";
      }
    }
    return text + "struct ScoreValueSites {\n" + visitor("for_each_site", sites) + "};\n";
  }

  static bool returns_one(mlir::func::FuncOp share) {
    const mlir::Value y = share.getBody().front().getTerminator()->getOperand(0);
    return mlir::matchPattern(y, mlir::m_OneFloat());
  }

  // Whether which entry it is depends on what is read.
  static bool reads(mlir::func::FuncOp entry) { return !entry.getBody().getOps<hstu::ReadOp>().empty(); }

  // Whether the entry is another one for each head: it follows from the head, or from the product.
  static bool knows_head(mlir::func::FuncOp entry) {
    constexpr unsigned kProduct = 0, kHead = 5;
    bool by_head = !entry.getArgument(kProduct).use_empty() || !entry.getArgument(kHead).use_empty();
    entry.walk([&](hstu::ReadOp read) { by_head = by_head || read.getByHead(); });
    return by_head;
  }

  // Whether this is the slope that a kernel adds up over the heads before it goes to tables: it has room for one, the
  // first that may be.
  bool is_head_sum(const std::string& slope) {
    if (head_sum_.empty()) head_sum_ = slope;
    return mlir::OperationEquivalence::isRegionEquivalentTo(&function(slope).getBody(), &function(head_sum_).getBody(),
                                                            mlir::OperationEquivalence::IgnoreLocations);
  }

  const AttentionSpec& spec_;
  mlir::ModuleOp module_;
  const OperandSums& sums_;
  std::string head_sum_;  // the slope; empty: there is none
  std::vector<std::string> operands_;
  std::vector<std::string> sites_, summed_sites_;  // whose terms are added up for each head, or over the heads first
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
    const bool of_pairs = operand.kind == &pair_kind();
    const std::string sums = operand.kind == &sequence_kind() ? "kOfSequence = true"
                             : of_pairs                       ? "kOfPair = true"
                                        : fmt::format("kByColumn = {}, kByHead = {}", by_column, operand.heads > 0);
    text +=
        fmt::format("struct {} {{\n  using Type = {};\n  static constexpr bool kByRow = {}, {}, kAdds = {};\n",
                    operand.slopes_struct(), element_struct(operand.dtype), by_row, sums, spec.params().adds_gradients);
    if (of_pairs) text += fmt::format("  static constexpr int kPairHeads = {};\n", operand.heads);
    if (by_row) text += slope_function("of_row", row);
    if (by_column) text += slope_function("of_column", column);
    text += print_tensors(operand, true, spec.params().adds_gradients) + "};\n";
  }
  return text;
}

std::string print_sites(const AttentionSpec& spec, mlir::ModuleOp module) {
  const OperandSums sums(spec.operands(), spec.shares_sites());
  return sums.parts.empty() ? "" : SitePrinter(spec, module, sums).print();
}

}  // namespace hstujit
