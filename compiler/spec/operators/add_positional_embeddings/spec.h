// add_positional_embeddings: scaled rows plus the embedding of each one's position (docs/ops-sequences.md,
// "add_positional_embeddings").
#pragma once

#include "compiler/spec/operators/add_positional_embeddings/positions.h"

namespace hstujit {

// Forward: seq_embeddings (L, D), position_embeddings_weight (Kp, D), alpha (float), seq_offsets (B+1), [num_targets
// (B)], out (L, D). Backward: dout, alpha, seq_offsets, [num_targets], dseq_embeddings, dposition_embeddings_weight.
class AddPositionalEmbeddingsSpec final : public SequenceOperator<PositionParams> {
 public:
  static constexpr std::string_view kOp = "add_positional_embeddings";
  static constexpr bool kHasWeights = true;

  explicit AddPositionalEmbeddingsSpec(PositionParams params) : SequenceOperator(kOp, std::move(params)) {}
  double operations(Direction) const override { return 2; }
  std::map<std::string, int64_t> generated_sizes(const Lengths& lengths) const override;

  // Computes the reference (sequence_reference.h).
  void reference_rows(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;

 protected:
  bool has_backward_kernel() const override { return true; }
  RowInterface forward_interface() const override { return position_interface(params_); }
};

}  // namespace hstujit
