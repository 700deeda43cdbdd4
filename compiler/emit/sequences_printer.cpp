#include "compiler/emit/sequences_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/emit/expression.h"
#include "compiler/emit/region_printer.h"
#include "compiler/ir/region_functions.h"

namespace hstujit {

namespace {

// The offsets that say how many sequences there are.
const std::string& offsets_of(const RowSequences& sequences) {
  return std::find_if(sequences.integers.begin(), sequences.integers.end(),
                      [](const Argument& argument) { return argument.semantic == Semantic::kOffsets; })
      ->name;
}

std::string first_row_of(const Dimension& axis) {
  if (axis.is_uniform()) return fmt::format("sequence * params.{}", axis.integer);
  return fmt::format("element_of(params.{0}, params.{0}_rows, sequence)", axis.offsets);
}

// A row of each of these, as `Found` has them.
class FoundRows {
 public:
  FoundRows(const RowFunctions& functions, const RowInterface& interface)
      : functions_(functions),
        groups_{{"inputs", interface.inputs_of(RowOperandKind::kRow)},
                {"tables", interface.inputs_of(RowOperandKind::kTable)},
                {"outputs", interface.outputs_of(RowOperandKind::kRow)},
                {"sums", interface.outputs_of(RowOperandKind::kTableSum)}} {}

  std::string members() const {
    std::string text, set;
    for (const auto& [name, operands] : groups_) {
      if (operands.empty()) continue;
      text += fmt::format("    i64 {}[{}];\n", name, operands.size());
      set += fmt::format("      for (i64& place : {}) place = row;\n", name);
    }
    return text + "    __device__ __forceinline__ void set(i64 row) {\n" + set + "    }\n";
  }

  std::string assignments() const {
    std::string text;
    for (const auto& [name, operands] : groups_) {
      for (size_t i = 0; i < operands.size(); ++i) {
        const RowOperand& operand = operands[i];
        const std::string row = operand.is_found()
                                    ? fmt::format("row_within({}, params.{}_rows)", operand.name, operand.argument())
                                    : "row";
        text += fmt::format("    found.{}[{}] = {};\n", name, i, row);
      }
    }
    return text;
  }

  // Prints a call of the index function, whose results are variables of their names.
  std::string call() const {
    mlir::func::FuncOp index = functions_.index;
    std::vector<std::string> arguments = {"params", "sequence", "position"}, names;
    for (unsigned i = 0; i < index.getNumResults(); ++i) names.push_back(result_name(index, i));
    const std::string function = index.getName().str();
    if (names.size() == 1)
      return wrapped_call(fmt::format("    const i64 {} = {}", names[0], function), arguments, ";\n");
    std::string variables;
    for (const std::string& name : names) variables += (variables.empty() ? "" : ", ") + name;
    arguments.insert(arguments.end(), names.begin(), names.end());
    return fmt::format("    i64 {};\n", variables) + wrapped_call("    " + function, arguments, ";\n");
  }

 private:
  struct Group {
    const char* name;
    std::vector<RowOperand> operands;
  };
  const RowFunctions& functions_;
  std::vector<Group> groups_;
};

std::string print_missing(const RowInterface& interface) {
  std::string text =
      "\n"
      "  // Value of an element of an input where its tensor has no such row.\n"
      "  static __device__ __forceinline__ float missing(const Params& params, int input) {\n";
  const std::vector<RowOperand> rows = interface.inputs_of(RowOperandKind::kRow);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].is_found()) continue;
    const std::string value =
        rows[i].fill.empty() ? float_literal(static_cast<float>(rows[i].missing)) : "params." + rows[i].fill;
    text += fmt::format("    if (input == {}) return {};\n", i, value);
  }
  return text + "    return 0.0f;\n  }\n";
}

}  // namespace

Result<std::string> print_sequences(const RowFunctions& functions, const RowInterface& interface) {
  if (!interface.sequences) return std::string();
  const RowSequences& sequences = *interface.sequences;
  const Dimension& first = sequences.walked.front();
  const bool uniform = sequences.walked.size() == 1 && first.is_uniform();
  HSTUJIT_ASSIGN_OR_RETURN(const std::string index, print_row_index(functions.index));
  const FoundRows found(functions, interface);

  std::string text = "// Where the rows of other tensors are, for a row by its place in its sequence.\n" + index;
  text += fmt::format(
      "\n"
      "// Rows that are gone through are those of sequences.\n"
      "struct Sequences {{\n"
      "  static constexpr bool kUniform = {};  // all sequences have as many rows\n"
      "\n"
      "  struct Found {{\n"
      "{}  }};\n"
      "\n"
      "  static __device__ __forceinline__ i64 count(const Params& params) {{ return params.{}_rows - 1; }}\n",
      uniform, found.members(), offsets_of(sequences));
  if (uniform) {
    text += fmt::format("  static __device__ __forceinline__ i64 rows(const Params& params) {{ return params.{}; }}\n",
                        first.integer);
  } else {
    std::string sum;
    for (const Dimension& axis : sequences.walked) sum += (sum.empty() ? "" : " + ") + first_row_of(axis);
    text += fmt::format(
        "  static __device__ __forceinline__ i64 first_row(const Params& params, i64 sequence) {{\n"
        "    return {};\n"
        "  }}\n",
        sum);
  }
  text += print_missing(interface);
  text += fmt::format(
      "\n"
      "  static __device__ __forceinline__ void find(const Params& params, i64 row, i64 sequence, i64 position,\n"
      "                                              Found& found) {{\n"
      "{}{}"
      "  }}\n"
      "}};\n\n",
      found.call(), found.assignments());
  return text;
}

}  // namespace hstujit
