// jagged_dense_bmm_broadcast_add: the rows of each sequence times a matrix of its own, and a bias
// (docs/ops-products.md, "jagged_dense_bmm_broadcast_add").
#pragma once

#include "compiler/spec/gemm_operator.h"

namespace hstujit {

struct JaggedDenseBmmBroadcastAddParams : SequenceGemmParams {
  static constexpr std::string_view kOp = "jagged_dense_bmm_broadcast_add";

  bool bias = true;
  bool elementwise = false;
  bool transpose_dense = false;

  static constexpr auto fields() {
    using P = JaggedDenseBmmBroadcastAddParams;
    return std::tuple_cat(
        fields_of<P>("columns of jagged, which the products sum over", "columns of the result"),
        std::make_tuple(field("bias", &P::bias, "there is a bias"),
                        field("elementwise", &P::elementwise, "bias is (L, n), and not a row of each sequence"),
                        field("transpose_dense", &P::transpose_dense, "dense is (B, n, k)")));
  }
};

// Forward: [bias (B,N) or (L,N)], jagged (L,K), dense (B,K,N) or (B,N,K), seq_offsets (B+1), max_seq_len, out (L,N).
// Backward, a program: jagged, dense, dout (L,N), seq_offsets, max_seq_len, djagged, ddense, dbias where bias has a row
// of each sequence; of an elementwise one it is dout.
class JaggedDenseBmmBroadcastAddSpec final : public GemmOperator<JaggedDenseBmmBroadcastAddParams> {
 public:
  explicit JaggedDenseBmmBroadcastAddSpec(JaggedDenseBmmBroadcastAddParams params);

  std::shared_ptr<const GradientProgram> gradient() const;

  // Computes an element of the reference (gemm_reference.h).
  double reference_epilogue(double sum, int64_t, const std::vector<double>& operands) const;

 private:
  bool has_bias_rows() const { return params_.bias && !params_.elementwise; }
};

}  // namespace hstujit
