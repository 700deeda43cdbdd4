#include "compiler/spec/operators/addmm/spec.h"

namespace hstujit {

namespace {

GemmInterface interface_of(const AddmmParams& params) {
  GemmInterface gemm;
  gemm.n = params.n;
  gemm.k = params.k;
  gemm.a = {"mat1", false, "rows"};
  gemm.b = {"mat2", params.transpose_mat2, "weights"};
  gemm.doc = "result";
  gemm.operands.push_back({"alpha", GemmOperandKind::kScalar, DataType::kFp32, "factor of the product", 1});
  if (params.input == "none") return gemm;
  const auto kind = params.input == "vector" ? GemmOperandKind::kVector : GemmOperandKind::kMatrix;
  gemm.operands.push_back({"input", kind, params.dtype, "what is added"});
  gemm.operands.push_back({"beta", GemmOperandKind::kScalar, DataType::kFp32, "factor of input", 1});
  return gemm;
}

}  // namespace

OpSpecPtr parse_addmm(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_gemm_operator<AddmmSpec>(json, path, mistakes);
}
Json schema_addmm() { return fields_schema<AddmmParams>(); }

AddmmSpec::AddmmSpec(const AddmmParams& params) : GemmOperator(params, interface_of(params)) {}

}  // namespace hstujit
