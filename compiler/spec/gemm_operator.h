// An operator of the gemm family over a struct of its parameters, which has at least the fields of GemmParams, or of
// SequenceGemmParams, and says what configs call the operator, as those of RowOperator do (row_operator.h):
//
//   struct AddmmParams : GemmParams { static constexpr std::string_view kOp = "addmm"; ... };
//   class AddmmSpec final : public GemmOperator<AddmmParams> { ... };
//   OpSpecPtr parse_addmm(const Json& json, const std::string& path, Mistakes& mistakes) {
//     return parse_gemm_operator<AddmmSpec>(json, path, mistakes);
//   }
//
// Where its backward direction is a program of other operators, the class has
//
//   std::shared_ptr<const GradientProgram> gradient() const;
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/spec/alignment.h"
#include "compiler/spec/gemm_spec.h"
#include "compiler/spec/gradient_program.h"
#include "compiler/spec/read_params.h"

namespace hstujit {

template <typename P>
class GemmOperator : public WithGradientProgram<GemmSpec> {
 public:
  using Params = P;

  GemmOperator(P params, GemmInterface interface) : params_(std::move(params)), interface_(std::move(interface)) {}

  const P& params() const { return params_; }
  std::string_view op() const final { return P::kOp; }
  bool supports(Direction direction) const final { return direction == Direction::kForward || has_gradient(); }
  const GemmInterface& interface() const final { return interface_; }
  DataType dtype() const final { return params_.dtype; }
  MatmulPrecision precision() const final { return params_.precision; }
  int64_t alignment() const final { return params_.alignment; }
  int64_t typical_rows() const final {
    if constexpr (requires(const P& params) { params.typical_rows; }) return params_.typical_rows;
    return 0;
  }
  Json to_json() const final { return operator_json(P::kOp, params_); }

 protected:
  const P params_;

 private:
  const GemmInterface interface_;
};

// parse_<op>: a Spec in its canonical form, or null where there are mistakes.
template <typename Spec>
OpSpecPtr parse_gemm_operator(const Json& json, const std::string& path, Mistakes& mistakes) {
  auto params = read_params<typename Spec::Params>(json, path, mistakes);
  if (!params || !check_alignment(params->alignment, params->dtype, path, mistakes)) return nullptr;
  // Rows of every tensor have k or n columns, so none is aligned to more than the better of them.
  params->alignment = std::min(
      params->alignment, std::max(row_alignment(params->k, params->dtype), row_alignment(params->n, params->dtype)));
  if (params->dtype != DataType::kFp32) params->precision = MatmulPrecision::kTf32;
  auto spec = std::make_shared<Spec>(*std::move(params));
  if constexpr (requires { spec->gradient(); }) spec->set_gradient(spec->gradient());
  return spec;
}

}  // namespace hstujit
