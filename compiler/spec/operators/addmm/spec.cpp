#include "compiler/spec/operators/addmm/spec.h"

#include <fmt/format.h>

#include "compiler/spec/mistakes.h"
#include "compiler/spec/operators/addmm_wgrad/spec.h"

namespace hstujit {

namespace {

GemmInterface interface_of(const AddmmParams& params) {
  GemmInterface gemm;
  gemm.n = params.n;
  gemm.k = params.k;
  gemm.a = {"mat1", false, "rows"};
  gemm.b = {"mat2", params.transpose_mat2, "weights"};
  gemm.doc = "result";
  gemm.takes_column = params.silu_columns > 0;
  gemm.alike_from = params.silu_columns;
  gemm.operands.push_back({"alpha", GemmOperandKind::kScalar, "factor of the product", 1});
  if (params.input == "none") return gemm;
  const auto kind = params.input == "vector" ? GemmOperandKind::kVector : GemmOperandKind::kMatrix;
  gemm.operands.push_back({"input", kind, "what is added"});
  gemm.operands.push_back({"beta", GemmOperandKind::kScalar, "factor of input", 1});
  return gemm;
}

}  // namespace

OpSpecPtr parse_addmm(const Json& json, const std::string& path, Mistakes& mistakes) {
  const auto spec = parse_gemm_operator<AddmmSpec>(json, path, mistakes);
  if (spec == nullptr) return nullptr;
  const auto& params = static_cast<const AddmmSpec&>(*spec).params();
  if (params.silu_columns > params.n) {
    const std::string place = join_path(path, "silu_columns");
    mistakes.check(place, Status(Code::kInvalidConfig, fmt::format("{} is {}; allowed: at most n, which is {}", place,
                                                                   params.silu_columns, params.n)));
    return nullptr;
  }
  return spec;
}
Json schema_addmm() { return fields_schema<AddmmParams>(); }

AddmmSpec::AddmmSpec(const AddmmParams& params) : GemmOperator(params, interface_of(params)) {}

std::shared_ptr<const GradientProgram> AddmmSpec::gradient() const {
  if (params_.silu_columns > 0) return nullptr;
  AddmmParams of_rows = params_;
  of_rows.k = params_.n;
  of_rows.n = params_.k;
  of_rows.input = "none";
  of_rows.transpose_mat2 = !params_.transpose_mat2;
  AddmmWgradParams of_weights;
  static_cast<GemmParams&>(of_weights) = params_;
  of_weights.transpose_mat2 = params_.transpose_mat2;
  of_weights.bias = params_.input == "vector";

  const ProgramValue dout{"dout", -1, "gradient of the result"};
  ProgramBuilder program;
  program.inputs({"mat1", "mat2", "dout", "alpha", "beta"});
  program.step(std::make_shared<AddmmSpec>(of_rows), Direction::kForward,
               {{"mat1", dout}, {"out", {"dmat1", -1, "gradient of mat1"}}});
  program.step(std::make_shared<AddmmWgradSpec>(of_weights), Direction::kForward,
               {{"dout", dout},
                {"out", {"dmat2", -1, "gradient of mat2, summed over all rows"}},
                {"dbias", {"dinput", -1, "gradient of input, summed over all rows"}}});
  return std::make_shared<GradientProgram>(program.finish());
}

}  // namespace hstujit
