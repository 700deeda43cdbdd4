// An operator of the row family over a struct of its parameters, which has at least the fields of RowParams and says
// what configs call the operator:
//
//   struct RmsNormParams : RowParams { static constexpr std::string_view kOp = "rms_norm"; ... };
//   class RmsNormSpec final : public RowOperator<RmsNormParams> { ... };
//   OpSpecPtr parse_rms_norm(const Json& json, const std::string& path, Mistakes& mistakes) {
//     return parse_row_operator<RmsNormSpec>(json, path, mistakes);
//   }
//   Json schema_rms_norm() { return fields_schema<RmsNormParams>(); }
//
// Where it has rules of its own, its parameters have
//
//   void check(const std::string& path, Mistakes& mistakes) const;  as check_row_params()
//   void make_canonical();                                          as the function of that name
//
// For operators over rows of sequences (sequence_operator.h) the class has
//
//   static constexpr bool kHasWeights;                              tables count as weights
//   std::shared_ptr<const GradientProgram> gradient() const;        where another operator computes its gradient
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "compiler/spec/field_rules.h"
#include "compiler/spec/row_spec.h"

namespace hstujit {

template <typename P>
class RowOperator : public RowSpec {
 public:
  using Params = P;

  explicit RowOperator(P params) : params_(std::move(params)) {}

  const P& params() const { return params_; }
  std::string_view op() const final { return P::kOp; }
  int64_t alignment() const final { return params_.alignment; }
  Json to_json() const final { return operator_json(P::kOp, params_); }

 protected:
  P params_;
};

// parse_<op>: a Spec in its canonical form, or null where there are mistakes.
template <typename Spec>
OpSpecPtr parse_row_operator(const Json& json, const std::string& path, Mistakes& mistakes) {
  const size_t before = mistakes.count();
  typename Spec::Params params;
  read_fields(json, path, params, mistakes, {"op"});
  const bool right = check_rules_between(field_slots(params), path, before, mistakes, [&](Mistakes& broken) {
    check_row_params(params, path, broken);
    if constexpr (requires { params.check(path, broken); }) params.check(path, broken);
  });
  if (!right || mistakes.count() != before) return nullptr;
  if constexpr (requires { params.make_canonical(); }) params.make_canonical();
  if constexpr (requires { Spec::kHasWeights; }) {
    make_canonical(params, Spec::kHasWeights);
  } else {
    make_canonical(params, Spec(params).has_vectors());
  }
  auto spec = std::make_shared<Spec>(std::move(params));
  if constexpr (requires { spec->gradient(); }) spec->set_gradient(spec->gradient());
  return spec;
}

}  // namespace hstujit
