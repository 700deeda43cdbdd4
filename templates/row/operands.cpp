#include "templates/row/operands.h"

#include <fmt/format.h>

#include <algorithm>

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
std::string print_addresses(const char* function, const Operands& operands, bool output, const char* indent = "") {
  if (operands.empty()) return {};
  const bool rows = operands.front().kind == RowOperandKind::kRow;
  std::string text = fmt::format(
      "\n"
      "{0}  template <class Params>\n"
      "{0}  static __device__ __forceinline__ void {1}(const Params& params, {2}void* (&data)[{3}]{4}) {{\n",
      indent, function, output ? "" : "const ", operands.size(),
      rows ? fmt::format(", i64 (&strides)[{}]", operands.size()) : "");
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string& argument = operands[i].argument();
    const std::string first = operands[i].first_column == 0 ? "" : fmt::format(" + {}", operands[i].first_column);
    text += fmt::format("{}    data[{}] = params.{}{};\n", indent, i, argument, first);
    if (rows) text += fmt::format("    strides[{}] = params.{}_stride;\n", i, argument);
  }
  return text + indent + "  }\n";
}

// What there is of groups; empty where there is nothing, so that the kernel can tell.
std::string print_groups(const RowInterface& interface, const Operands& vectors, const Operands& sums) {
  std::string text;
  if (interface.groups > 1 || !vectors.empty()) {
    text += "\n  struct Groups {\n  " + fmt::format("  static constexpr int kCount = {};\n", interface.groups);
    text += "  " + count_line("kVectors", vectors) + print_addresses("vectors", vectors, false, "  ") + "  };\n";
  }
  if (!sums.empty()) {
    text += "\n  struct GroupSums {\n  " + count_line("kCount", sums);
    text += print_addresses("sums", sums, true, "  ") + "  };\n";
  }
  return text;
}

// Of vectors and of sums, which all have the same.
DataType vector_type(const RowInterface& interface) {
  for (const Operands* operands : {&interface.inputs, &interface.outputs}) {
    for (const RowOperand& operand : *operands) {
      if (operand.kind != RowOperandKind::kRow && operand.kind != RowOperandKind::kScalar &&
          operand.kind != RowOperandKind::kSeed)
        return operand.dtype;
    }
  }
  return DataType::kFp32;
}

}  // namespace

std::vector<ParamSlot> operand_slots(const RowSpec& spec, Direction direction) {
  using Kind = ParamSlot::Kind;
  const RowInterface interface = spec.interface(direction);
  const Signature signature = spec.signature(direction);
  std::vector<ParamSlot> slots;
  const auto add = [&](const RowOperand& operand, bool output) {
    ParamSlot slot;
    slot.name = operand.argument();
    slot.argument = find_argument(signature, slot.name);
    const bool known =
        std::any_of(slots.begin(), slots.end(), [&](const ParamSlot& before) { return before.name == slot.name; });
    if (known) return;
    slot.kind = operand.kind == RowOperandKind::kScalar ? Kind::kFloat
                : operand.kind == RowOperandKind::kSeed ? Kind::kLong
                                                        : Kind::kPointer;
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
  rows.argument = find_argument(signature, interface.inputs.front().argument());
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
  text += fmt::format("  using Vector = {};  // of vectors and of sums\n", element_type(vector_type(interface)));
  text += count_line("kRowInputs", rows) + count_line("kVectorInputs", vectors);
  text += count_line("kRowOutputs", outputs) + count_line("kColumnSums", sums);
  text += print_addresses("row_inputs", rows, false) + print_addresses("vector_inputs", vectors, false);
  text += print_addresses("row_outputs", outputs, true) + print_addresses("column_sums", sums, true);
  text += print_groups(interface, of_kind(interface.inputs, RowOperandKind::kGroupVector),
                       of_kind(interface.outputs, RowOperandKind::kGroupSum));
  return text + "};\n";
}

}  // namespace hstujit::row
