#include "compiler/emit/gemm_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/plan/device_types.h"

namespace hstujit {

namespace {

std::vector<GemmOperand> of_kind(const GemmInterface& gemm, GemmOperandKind kind) {
  std::vector<GemmOperand> operands;
  std::copy_if(gemm.operands.begin(), gemm.operands.end(), std::back_inserter(operands),
               [kind](const GemmOperand& operand) { return operand.kind == kind; });
  return operands;
}

// The tensors of a kind: how many, their type, and where they are. A vector that all share has no stride.
std::string print_tensors(const char* name, DataType dtype, const std::vector<GemmOperand>& operands, bool strides) {
  std::string text = fmt::format(
      "  struct {} {{\n"
      "    static constexpr int kCount = {};\n"
      "    using Type = {};\n",
      name, operands.size(), element_struct(operands.empty() ? DataType::kFp32 : dtype));
  if (!operands.empty()) {
    text += fmt::format(
        "    template <class Params>\n"
        "    static __device__ __forceinline__ void find(const Params& params, const void* (&data)[{0}],\n"
        "                                                i64 (&strides)[{0}]) {{\n",
        operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
      text += fmt::format("      data[{0}] = params.{1};\n      strides[{0}] = {2};\n", i, operands[i].name,
                          strides ? fmt::format("params.{}_stride", operands[i].name) : "0");
    }
    text += "    }\n";
  }
  return text + "  };\n";
}

}  // namespace

Result<std::string> print_epilogue(mlir::func::FuncOp epilogue, const GemmSpec& spec) {
  const GemmInterface& gemm = spec.interface();
  const Activation activation = spec.dtype() == DataType::kFp32 ? Activation::kAccurate : Activation::kMufu;
  HSTUJIT_ASSIGN_OR_RETURN(const std::string function, print_region(epilogue, activation));
  std::string arguments = gemm.takes_column ? "sum, column" : "sum";
  int vectors = 0, matrices = 0;
  for (const GemmOperand& operand : gemm.operands) {
    switch (operand.kind) {
      case GemmOperandKind::kScalar:
        arguments += ", params." + operand.name;
        break;
      case GemmOperandKind::kVector:
        arguments += fmt::format(", vectors[{}]", vectors++);
        break;
      case GemmOperandKind::kMatrix:
        arguments += fmt::format(", matrices[{}]", matrices++);
        break;
    }
  }
  return "// An element of the result, of one of the product.\n" + function + "\n" +
         "// What the epilogue reads beside the product: vectors of columns, and matrices as large as the result.\n"
         "struct Epilogue {\n" +
         fmt::format(
             "  using Data = {};  // of the result\n"
             "  static constexpr int kAlikeFrom = {};  // column from which on all have the same formula\n",
             element_struct(spec.dtype()), gemm.alike_from) +
         print_tensors("Vectors", spec.dtype(), of_kind(gemm, GemmOperandKind::kVector), gemm.per_sequence()) +
         print_tensors("Matrices", spec.dtype(), of_kind(gemm, GemmOperandKind::kMatrix), true) +
         fmt::format(
             "  template <class Params>\n"
             "  static __device__ __forceinline__ float apply(const Params& params, float sum, int column,\n"
             "                                                const float* vectors, const float* matrices) {{\n"
             "    return epilogue({});\n"
             "  }}\n"
             "}};\n\n",
             arguments);
}

}  // namespace hstujit
