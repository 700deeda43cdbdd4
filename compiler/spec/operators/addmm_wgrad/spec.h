// addmm_wgrad: the gradient of addmm's weights, a product that sums over rows (docs/ops-products.md, "addmm_wgrad").
#pragma once

#include "compiler/spec/gemm_operator.h"

namespace hstujit {

struct AddmmWgradParams : GemmParams {
  static constexpr std::string_view kOp = "addmm_wgrad";

  bool transpose_mat2 = false;
  bool bias = false;

  static constexpr auto fields() {
    using P = AddmmWgradParams;
    return std::tuple_cat(
        fields_of<P>("columns of mat1", "columns of dout"),
        std::make_tuple(field("transpose_mat2", &P::transpose_mat2, "the gradient is (n, k), as that of nn.Linear"),
                        field("bias", &P::bias, "the gradient of a bias, too: sums of the columns of dout")));
  }
};

// Forward: mat1 (L,K), dout (L,N), alpha, [beta], out (K,N) or (N,K), [dbias (N)].
class AddmmWgradSpec final : public GemmOperator<AddmmWgradParams> {
 public:
  explicit AddmmWgradSpec(const AddmmWgradParams& params);

  // Computes an element of the reference (gemm_reference.h).
  double reference_epilogue(double sum, int64_t, const std::vector<double>& operands) const;
};

}  // namespace hstujit
