#include "templates/row/operands.h"

#include <fmt/format.h>

namespace hstujit::row {

namespace {

using Operands = std::vector<RowOperand>;

Operands of_kind(const Operands& operands, RowOperandKind kind) {
  Operands result;
  for (const RowOperand& operand : operands) {
    if (operand.kind == kind) result.push_back(operand);
  }
  return result;
}

const char* element_type(DataType dtype) {
  return dtype == DataType::kBf16 ? "Bf16" : dtype == DataType::kFp16 ? "Fp16" : "Fp32";
}

std::string pointer_type(const RowOperand& operand, bool output) {
  return fmt::format("{}{}*", output ? "" : "const ", operand.dtype == DataType::kFp32 ? "float" : "u16");
}

std::string count_line(const char* name, const Operands& operands) {
  std::string names;
  for (const RowOperand& operand : operands) names += (names.empty() ? "  // " : ", ") + operand.name;
  return fmt::format("  static constexpr int {} = {};{}\n", name, operands.size(), names);
}

// A function that gives the addresses of these, and the strides of rows.
std::string print_addresses(const char* function, const Operands& operands, bool output) {
  if (operands.empty()) return {};
  const bool rows = operands.front().kind == RowOperandKind::kRow;
  std::string text = fmt::format(
      "\n"
      "  template <class Params>\n"
      "  static __device__ __forceinline__ void {}(const Params& params, {}void* (&data)[{}]{}) {{\n",
      function, output ? "" : "const ", operands.size(),
      rows ? fmt::format(", i64 (&strides)[{}]", operands.size()) : "");
  for (size_t i = 0; i < operands.size(); ++i) {
    text += fmt::format("    data[{}] = params.{};\n", i, operands[i].name);
    if (rows) text += fmt::format("    strides[{}] = params.{}_stride;\n", i, operands[i].name);
  }
  return text + "  }\n";
}

DataType vector_type(const Operands& vectors, const Operands& sums) {
  if (!vectors.empty()) return vectors.front().dtype;
  return sums.empty() ? DataType::kFp32 : sums.front().dtype;
}

}  // namespace

std::vector<ParamSlot> operand_slots(const RowSpec& spec, Direction direction) {
  using Kind = ParamSlot::Kind;
  const RowInterface interface = spec.interface(direction);
  const Signature signature = spec.signature(direction);
  std::vector<ParamSlot> slots;
  const auto add = [&](const RowOperand& operand, bool output) {
    ParamSlot slot;
    slot.name = operand.name;
    slot.argument = find_argument(signature, operand.name);
    slot.kind = operand.kind == RowOperandKind::kScalar ? Kind::kFloat : Kind::kPointer;
    slot.type = pointer_type(operand, output);
    slots.push_back(slot);
    if (operand.kind != RowOperandKind::kRow) return;
    slot.name += "_stride";
    slot.kind = Kind::kStride;
    slots.push_back(slot);
  };
  for (const RowOperand& input : interface.inputs) add(input, false);
  for (const RowOperand& output : interface.outputs) add(output, true);
  ParamSlot rows;
  rows.name = "rows";
  rows.kind = Kind::kSize;
  rows.argument = find_argument(signature, interface.inputs.front().name);
  slots.push_back(rows);
  return slots;
}

std::string print_operands(const RowSpec& spec, Direction direction) {
  const RowInterface interface = spec.interface(direction);
  const Operands rows = of_kind(interface.inputs, RowOperandKind::kRow);
  const Operands vectors = of_kind(interface.inputs, RowOperandKind::kVector);
  const Operands outputs = of_kind(interface.outputs, RowOperandKind::kRow);
  const Operands sums = of_kind(interface.outputs, RowOperandKind::kColumnSum);
  std::string text = "// The operator's tensors: rows, vectors that all rows share, and sums over all rows.\n";
  text += "struct Operands {\n";
  text += fmt::format("  using Data = {};    // of rows\n", element_type(spec.dtype()));
  text += fmt::format("  using Vector = {};  // of vectors and of sums\n", element_type(vector_type(vectors, sums)));
  text += count_line("kRowInputs", rows) + count_line("kVectorInputs", vectors);
  text += count_line("kRowOutputs", outputs) + count_line("kColumnSums", sums);
  text += print_addresses("row_inputs", rows, false) + print_addresses("vector_inputs", vectors, false);
  text += print_addresses("row_outputs", outputs, true) + print_addresses("column_sums", sums, true);
  return text + "};\n";
}

}  // namespace hstujit::row
