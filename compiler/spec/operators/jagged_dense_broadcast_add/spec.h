// jagged_dense_broadcast_add: one row of a dense tensor is added to all rows of a sequence (docs/ops-sequences.md,
// "jagged_dense_broadcast_add").
#pragma once

#include "compiler/spec/sequence_operator.h"

namespace hstujit {

// Forward: jagged (L, D), dense (B, D), seq_offsets (B+1), out (L, D). Backward: dout, seq_offsets, ddense; the
// gradient of jagged is dout itself.
class JaggedDenseBroadcastAddSpec final : public SequenceOperator<SequenceParams> {
 public:
  static constexpr std::string_view kOp = "jagged_dense_broadcast_add";
  static constexpr bool kHasWeights = false;

  explicit JaggedDenseBroadcastAddSpec(SequenceParams params) : SequenceOperator(kOp, std::move(params)) {}
  double operations(Direction) const override { return 1; }

  // Computes the reference (sequence_reference.h).
  void reference_rows(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;

 protected:
  bool has_backward_kernel() const override { return true; }
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
