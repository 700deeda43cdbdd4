#include "compiler/emit/operand_printer.h"

#include <fmt/format.h>

namespace hstujit {

namespace {

std::string member_function(std::string_view type, std::string_view name, std::string_view member) {
  return fmt::format(
      "      template <class P> static __device__ __forceinline__ {} {}(const P& p) {{ return p.{}; }}\n", type, name,
      member);
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

}  // namespace hstujit
