#include "compiler/emit/operand_printer.h"

#include <fmt/format.h>

#include "compiler/ir/region_functions.h"
#include "compiler/plan/device_types.h"

namespace hstujit {

namespace {

std::string member_function(std::string_view type, std::string_view name, std::string_view member) {
  return fmt::format(
      "      template <class P> static __device__ __forceinline__ {} {}(const P& p) {{ return p.{}; }}\n", type, name,
      member);
}

// A member function that is the derivative of the score with respect to the element of the pair's row or column.
std::string slope_function(std::string_view name, const std::string& region) {
  return fmt::format(
      "  template <class At> static __device__ __forceinline__ float {}(float x, const At& at, const Params& params) "
      "{{\n"
      "    return {}(x, at, params);\n  }}\n",
      name, region);
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
    if (operand.use != OperandUse::kScore || !operand.gradient) continue;
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

}  // namespace hstujit
