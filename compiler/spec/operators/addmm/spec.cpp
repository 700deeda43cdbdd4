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
  const size_t before = mistakes.count();
  AddmmParams params;
  read_fields(json, path, params, mistakes, {"op"});
  if (mistakes.count() == before) check_gemm_params(params, path, mistakes);
  if (mistakes.count() != before) return nullptr;
  return std::make_shared<AddmmSpec>(std::move(params));
}
Json schema_addmm() { return fields_schema<AddmmParams>(); }

AddmmSpec::AddmmSpec(AddmmParams params) : params_(std::move(params)), interface_(interface_of(params_)) {}

nlohmann::ordered_json AddmmSpec::to_json() const {
  Json json = {{"op", kOp}};
  json.update(fields_to_json(params_));
  return json;
}

}  // namespace hstujit
