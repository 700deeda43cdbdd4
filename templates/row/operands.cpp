#include "templates/row/operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/plan/device_types.h"

namespace hstujit::row {

namespace {

using Operands = std::vector<RowOperand>;

std::string pointer_type(const RowOperand& operand, bool output) {
  return fmt::format("{}{}*", output ? "" : "const ", pointed_at(operand.dtype));
}

std::string count_line(const char* name, const Operands& operands) {
  std::string names;
  for (const RowOperand& operand : operands) names += (names.empty() ? "  // " : ", ") + operand.name;
  return fmt::format("  static constexpr int {} = {};{}\n", name, operands.size(), names);
}

// A function that gives the addresses of these, and the strides of rows.
std::string print_addresses(const char* function, const Operands& operands, bool output, const char* indent = "") {
  if (operands.empty()) return {};
  const bool rows = operands.front().is_matrix();
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

// Prints what exists of groups; empty where there is nothing, so that the kernel can tell.
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

// A function that says how many rows tables have.
std::string print_counts(const Operands& tables) {
  std::string text = fmt::format(
      "\n"
      "    template <class Params>\n"
      "    static __device__ __forceinline__ void counts(const Params& params, i64 (&counts)[{}]) {{\n",
      tables.size());
  for (size_t i = 0; i < tables.size(); ++i)
    text += fmt::format("      counts[{}] = params.{}_rows;\n", i, tables[i].argument());
  return text + "    }\n";
}

// Prints what exists of sequences, tables and sums of tables; empty where there is nothing.
std::string print_sequences(const RowInterface& interface, const Operands& tables, const Operands& sums) {
  if (!interface.sequences) return {};
  std::string text = "\n  using Sequences = ::Sequences;\n";
  if (!tables.empty() || !sums.empty()) {
    const RowOperand& first = tables.empty() ? sums.front() : tables.front();
    text += fmt::format("  using Table = {};  // of tables\n", element_struct(first.dtype));
  }
  if (!tables.empty()) {
    text += "\n  struct Tables {\n  " + count_line("kCount", tables);
    text += print_addresses("rows", tables, false, "  ") + "  };\n";
  }
  if (!sums.empty()) {
    text += "\n  struct TableSums {\n  " + count_line("kCount", sums);
    text += fmt::format("    static constexpr bool kSorted = {};  // rows find those of tables in their order\n",
                        finds_in_order(sums));
    text += print_addresses("rows", sums, true, "  ") + print_counts(sums) + "  };\n";
  }
  return text;
}

// Type of vectors and of sums, which all have the same.
DataType vector_type(const RowInterface& interface) {
  for (const Operands* operands : {&interface.inputs, &interface.outputs}) {
    for (const RowOperand& operand : *operands) {
      if (!operand.is_matrix() && operand.has_elements()) return operand.dtype;
    }
  }
  return DataType::kFp32;
}

// Rows of a tensor, or integers: "<name>_rows".
void add_size(const Signature& signature, const std::string& name, std::vector<ParamSlot>& slots) {
  ParamSlot slot;
  slot.name = name + "_rows";
  slot.kind = ParamSlot::Kind::kSize;
  slot.argument = find_argument(signature, name);
  slots.push_back(slot);
}

void add_integer(const Signature& signature, const Argument& integer, std::vector<ParamSlot>& slots) {
  ParamSlot slot;
  slot.name = integer.name;
  slot.argument = find_argument(signature, integer.name);
  slot.kind = ParamSlot::Kind::kLong;
  if (integer.kind == ArgumentKind::kTensor) {
    slot.kind = ParamSlot::Kind::kPointer;
    slot.type = integer.dtype == DataType::kInt32 ? "const int*" : "const i64*";
  }
  slots.push_back(slot);
  if (integer.kind == ArgumentKind::kTensor) add_size(signature, integer.name, slots);
}

}  // namespace

std::vector<ParamSlot> operand_slots(const RowSpec& spec, Direction direction) {
  using Kind = ParamSlot::Kind;
  const RowInterface& interface = spec.interface(direction);
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
    slot.type = operand.kind == RowOperandKind::kSeedTensor ? "const i64*" : pointer_type(operand, output);
    slots.push_back(slot);
    if (!operand.is_matrix()) return;
    slot.name += "_stride";
    slot.kind = Kind::kStride;
    slots.push_back(slot);
    if (operand.is_found()) add_size(signature, operand.argument(), slots);
  };
  for (const RowOperand& input : interface.inputs) add(input, false);
  for (const RowOperand& output : interface.outputs) add(output, true);
  if (interface.has_row_numbers) {
    ParamSlot numbers;
    numbers.name = kRowNumbers;
    numbers.argument = find_argument(signature, kRowNumbers);
    numbers.kind = Kind::kPointer;
    numbers.type = "const i64*";
    slots.push_back(numbers);
  }
  if (interface.sequences) {
    for (const Argument& integer : interface.sequences->integers) add_integer(signature, integer, slots);
  }
  ParamSlot rows;
  rows.name = "rows";
  rows.kind = Kind::kSize;
  rows.argument = find_argument(signature, interface.walked().argument());
  slots.push_back(rows);
  return slots;
}

int64_t count_of(const std::vector<RowOperand>& operands, RowOperandKind kind) {
  return std::count_if(operands.begin(), operands.end(), [&](const RowOperand& one) { return one.kind == kind; });
}

bool has_table_sums(const RowSpec& spec) {
  return !spec.interface(Direction::kBackward).outputs_of(RowOperandKind::kTableSum).empty();
}

bool finds_in_order(const std::vector<RowOperand>& tables) {
  return std::all_of(tables.begin(), tables.end(),
                     [](const RowOperand& table) { return table.rows->symbol == "B" && !table.rows->is_uniform(); });
}

std::string print_operands(const RowSpec& spec, Direction direction) {
  const RowInterface& interface = spec.interface(direction);
  const Operands rows = interface.inputs_of(RowOperandKind::kRow);
  const Operands vectors = interface.inputs_of(RowOperandKind::kVector);
  const Operands outputs = interface.outputs_of(RowOperandKind::kRow);
  const Operands sums = interface.outputs_of(RowOperandKind::kColumnSum);
  const Operands tables = interface.inputs_of(RowOperandKind::kTable);
  std::string text = interface.sequences ? "struct Sequences;\n\n" : "";
  text += "// The operator's tensors: rows, vectors that all rows share, and sums over all rows.\n";
  text += "struct Operands {\n";
  text += fmt::format("  using Data = {};    // of rows\n", element_struct(spec.dtype()));
  text += fmt::format("  using Vector = {};  // of vectors and of sums\n", element_struct(vector_type(interface)));
  text += count_line("kRowInputs", rows) + count_line("kVectorInputs", vectors);
  text += count_line("kRowOutputs", outputs) + count_line("kColumnSums", sums);
  text += print_addresses("row_inputs", rows, false) + print_addresses("vector_inputs", vectors, false);
  text += print_addresses("row_outputs", outputs, true) + print_addresses("column_sums", sums, true);
  text += print_groups(interface, interface.inputs_of(RowOperandKind::kGroupVector),
                       interface.outputs_of(RowOperandKind::kGroupSum));
  text += print_sequences(interface, tables, interface.outputs_of(RowOperandKind::kTableSum));
  return text + "};\n";
}

}  // namespace hstujit::row
