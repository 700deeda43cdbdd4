// addmm: a matrix of few columns times weights, and a bias (docs/ops-products.md, "addmm").
#pragma once

#include <string>

#include "compiler/spec/gemm_operator.h"

namespace hstujit {

struct AddmmParams : GemmParams {
  static constexpr std::string_view kOp = "addmm";

  std::string input = "none";
  bool transpose_mat2 = false;
  int64_t silu_columns = 0;

  static constexpr auto fields() {
    using P = AddmmParams;
    return std::tuple_cat(
        fields_of<P>("columns of mat1, which the product sums over", "columns of the result"),
        std::make_tuple(field("input", &P::input, "what is added: nothing, a row (n) to all rows, or a matrix (L, n)")
                            .one_of("none vector matrix"),
                        field("transpose_mat2", &P::transpose_mat2, "mat2 is (n, k), as the weight of nn.Linear"),
                        field("silu_columns", &P::silu_columns,
                              "silu is applied to so many columns of the result, the first ones: at most n", 0,
                              GemmParams::kMaxColumns)));
  }
};

// Forward: [input (N) or (L,N)], mat1 (L,K), mat2 (K,N) or (N,K), alpha, [beta], out (L,N). Backward, a program: mat1,
// mat2, dout (L,N), alpha, [beta], dmat1, dmat2, dinput where input is a vector; of a matrix it is beta times dout.
// With silu_columns forward only.
class AddmmSpec final : public GemmOperator<AddmmParams> {
 public:
  explicit AddmmSpec(const AddmmParams& params);

  // None with silu_columns.
  std::shared_ptr<const GradientProgram> gradient() const;

  // Computes an element of the reference (gemm_reference.h).
  double reference_epilogue(double sum, int64_t column, const std::vector<double>& operands) const;
};

}  // namespace hstujit
