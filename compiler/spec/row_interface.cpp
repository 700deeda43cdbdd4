#include "compiler/spec/row_interface.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <set>

namespace hstujit {

namespace {

std::vector<RowOperand> of_kind(const std::vector<RowOperand>& operands, RowOperandKind kind) {
  std::vector<RowOperand> result;
  std::copy_if(operands.begin(), operands.end(), std::back_inserter(result),
               [kind](const RowOperand& operand) { return operand.kind == kind; });
  return result;
}

RowOperandKind gradient_kind(RowOperandKind kind) {
  if (kind == RowOperandKind::kVector) return RowOperandKind::kColumnSum;
  if (kind == RowOperandKind::kTable) return RowOperandKind::kTableSum;
  return kind == RowOperandKind::kGroupVector ? RowOperandKind::kGroupSum : kind;
}

// Documents the gradient of an operand. Texts are kept; there are as many as operators have operands.
std::string_view gradient_doc(const RowOperand& of) {
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string>;
  const std::string_view summed = of.kind == RowOperandKind::kRow ? ""
                                  : of.is_table()                 ? ": each row is summed over the rows that found it"
                                                                  : ", summed over all rows";
  const std::lock_guard lock(mutex);
  return *texts->insert(fmt::format("gradient of {}{}", of.name, summed)).first;
}

RowOperand gradient_of(const RowOperand& operand, std::string_view doc) {
  RowOperand gradient{"d" + operand.name, gradient_kind(operand.kind), operand.dtype, doc};
  if (!operand.tensor.empty()) gradient.tensor = "d" + operand.tensor;
  gradient.first_column = operand.first_column;
  gradient.rows = operand.rows;
  if (operand.gradient_in_place) gradient.in_place = operand.name;
  return gradient;
}

}  // namespace

std::vector<RowOperand> RowInterface::inputs_of(RowOperandKind kind) const { return of_kind(inputs, kind); }
std::vector<RowOperand> RowInterface::outputs_of(RowOperandKind kind) const { return of_kind(outputs, kind); }

const RowOperand& RowInterface::walked() const {
  const auto is_walked = [](const RowOperand& operand) {
    return operand.kind == RowOperandKind::kRow && !operand.is_found();
  };
  const auto input = std::find_if(inputs.begin(), inputs.end(), is_walked);
  return input != inputs.end() ? *input : *std::find_if(outputs.begin(), outputs.end(), is_walked);
}

int64_t RowInterface::elements(const RowOperand& operand) const {
  if (!operand.has_elements()) return 1;
  return operand.is_group() ? groups : width;
}

int64_t RowInterface::columns(const RowOperand& operand) const {
  int64_t columns = elements(operand);
  for (const std::vector<RowOperand>* operands : {&inputs, &outputs}) {
    for (const RowOperand& other : *operands) {
      if (other.argument() == operand.argument()) columns = std::max(columns, other.first_column + elements(other));
    }
  }
  return columns;
}

RowInterface backward_interface(const RowInterface& forward) {
  RowInterface backward{forward.width,    {}, {}, forward.groups, forward.drawn, forward.has_row_numbers,
                        forward.sequences};
  for (const RowOperand& input : forward.inputs) {
    if (input.in_gradient) backward.inputs.push_back(input);
    if (!input.has_elements() || !input.differentiated) continue;
    backward.outputs.push_back(gradient_of(input, gradient_doc(input)));
  }
  const auto behind_rows = std::find_if(backward.inputs.begin(), backward.inputs.end(),
                                        [](const RowOperand& input) { return input.kind != RowOperandKind::kRow; });
  std::vector<RowOperand> gradients;
  for (const RowOperand& output : forward.outputs) gradients.push_back(gradient_of(output, "gradient of the result"));
  for (const RowOperand& input : forward.inputs) {
    if (!input.residual) continue;
    gradients.push_back({std::string(kResidualGradient), RowOperandKind::kRow, input.dtype,
                         "gradient that the rows have where they go around the operator"});
  }
  backward.inputs.insert(behind_rows, gradients.begin(), gradients.end());
  return backward;
}

}  // namespace hstujit
