// jagged_jagged_bmm: of each sequence the product of two tensors of rows, summed over its rows (docs/ops-products.md,
// "jagged_jagged_bmm").
#pragma once

#include "compiler/spec/gemm_operator.h"

namespace hstujit {

struct JaggedJaggedBmmParams : SequenceGemmParams {
  static constexpr std::string_view kOp = "jagged_jagged_bmm";

  bool transpose_out = false;
  bool bias = false;

  static constexpr auto fields() {
    using P = JaggedJaggedBmmParams;
    return std::tuple_cat(fields_of<P>("columns of left", "columns of right"),
                          std::make_tuple(field("transpose_out", &P::transpose_out, "the result is (B, n, k)"),
                                          field("bias", &P::bias,
                                                "the gradient of a bias of each sequence, too: sums of the columns of "
                                                "its rows of right")));
  }
};

// Forward: left (L,K), right (L,N), seq_offsets (B+1), max_seq_len, out (B,K,N) or (B,N,K), [dbias (B,N)].
class JaggedJaggedBmmSpec final : public GemmOperator<JaggedJaggedBmmParams> {
 public:
  explicit JaggedJaggedBmmSpec(const JaggedJaggedBmmParams& params);

  // Computes an element of the reference (gemm_reference.h).
  double reference_epilogue(double sum, int64_t, const std::vector<double>&) const;
};

}  // namespace hstujit
