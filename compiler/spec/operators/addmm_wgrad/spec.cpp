#include "compiler/spec/operators/addmm_wgrad/spec.h"

namespace hstujit {

namespace {

GemmInterface interface_of(const AddmmWgradParams& params) {
  GemmInterface gemm;
  gemm.m = params.transpose_mat2 ? params.n : params.k;
  gemm.n = params.transpose_mat2 ? params.k : params.n;
  gemm.k = GemmInterface::kRows;
  const GemmFactor mat1 = {"mat1", false, "rows"}, dout = {"dout", false, "gradient of the result"};
  gemm.a = params.transpose_mat2 ? dout : mat1;
  gemm.b = params.transpose_mat2 ? mat1 : dout;
  gemm.a.transposed = true;
  gemm.operands = {{"alpha", GemmOperandKind::kScalar, "factor of the product", 1}};
  gemm.doc = "gradient of the weights, summed over all rows";
  if (params.bias) {
    gemm.column_sums = {params.transpose_mat2, "dbias", "beta", "gradient of the bias, summed over all rows",
                        "factor of the bias"};
  }
  return gemm;
}

}  // namespace

OpSpecPtr parse_addmm_wgrad(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_gemm_operator<AddmmWgradSpec>(json, path, mistakes);
}
Json schema_addmm_wgrad() { return fields_schema<AddmmWgradParams>(); }

AddmmWgradSpec::AddmmWgradSpec(const AddmmWgradParams& params) : GemmOperator(params, interface_of(params)) {}

}  // namespace hstujit
