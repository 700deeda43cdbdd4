#include "compiler/spec/operators/jagged_jagged_bmm/spec.h"

namespace hstujit {

namespace {

GemmInterface interface_of(const JaggedJaggedBmmParams& params) {
  GemmInterface gemm;
  gemm.m = params.transpose_out ? params.n : params.k;
  gemm.n = params.transpose_out ? params.k : params.n;
  gemm.k = GemmInterface::kRows;
  const GemmFactor left = {"left", false, "rows of all sequences"}, right = {"right", false, "rows of all sequences"};
  gemm.a = params.transpose_out ? right : left;
  gemm.b = params.transpose_out ? left : right;
  gemm.a.transposed = true;
  gemm.doc = "a matrix of each sequence, summed over its rows";
  gemm.offsets_dtype = params.offsets_dtype;
  if (params.bias)
    gemm.column_sums = {params.transpose_out, "dbias", "", "gradient of a bias, summed over the rows of each sequence",
                        ""};
  return gemm;
}

}  // namespace

OpSpecPtr parse_jagged_jagged_bmm(const Json& json, const std::string& path, Mistakes& mistakes) {
  return parse_gemm_operator<JaggedJaggedBmmSpec>(json, path, mistakes);
}
Json schema_jagged_jagged_bmm() { return fields_schema<JaggedJaggedBmmParams>(); }

JaggedJaggedBmmSpec::JaggedJaggedBmmSpec(const JaggedJaggedBmmParams& params)
    : GemmOperator(params, interface_of(params)) {}

}  // namespace hstujit
