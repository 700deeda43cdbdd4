// addmm_wgrad: the gradient of addmm's weights, a product that sums over rows (docs/ops.md, "addmm_wgrad").
#pragma once

#include <string>
#include <utility>

#include "compiler/spec/gemm_spec.h"

namespace hstujit {

struct AddmmWgradParams : GemmParams {
  bool transpose_mat2 = false;

  static constexpr auto fields() {
    using P = AddmmWgradParams;
    return std::tuple_cat(
        fields_of<P>("columns of mat1", "columns of dout"),
        std::make_tuple(field("transpose_mat2", &P::transpose_mat2, "the gradient is (n, k), as that of nn.Linear")));
  }
};

// Forward: mat1 (L,K), dout (L,N), alpha, out (K,N) or (N,K).
class AddmmWgradSpec final : public GemmSpec {
 public:
  static constexpr std::string_view kOp = "addmm_wgrad";

  explicit AddmmWgradSpec(AddmmWgradParams params);

  std::string_view op() const override { return kOp; }
  nlohmann::ordered_json to_json() const override;
  bool supports(Direction direction) const override { return direction == Direction::kForward; }
  const GemmInterface& interface() const override { return interface_; }
  DataType dtype() const override { return params_.dtype; }

 protected:
  double reference_epilogue(double sum, const std::vector<double>& operands) const override {
    return operands[0] * sum;
  }

 private:
  AddmmWgradParams params_;
  GemmInterface interface_;
};

}  // namespace hstujit
