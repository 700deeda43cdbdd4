// dense_to_jagged: as many rows of each sequence as it has, of a tensor that has the same number of all
// (docs/ops-sequences.md, "dense_to_jagged").
#pragma once

#include "compiler/spec/sequence_operator.h"

namespace hstujit {

// Forward: dense (B*max_len, D), seq_offsets (B+1), max_len (int), out (L, D). Backward: jagged_to_padded_dense, of
// dout to ddense.
class DenseToJaggedSpec final : public SequenceOperator<SequenceParams> {
 public:
  static constexpr std::string_view kOp = "dense_to_jagged";
  static constexpr bool kHasWeights = false;

  explicit DenseToJaggedSpec(SequenceParams params) : SequenceOperator(kOp, std::move(params)) {}
  double operations(Direction) const override { return 0; }
  GeneratedRows generated_rows(int64_t sequence, int64_t drawn, int64_t max_seq_len) const override;
  std::shared_ptr<const GradientProgram> gradient() const;

  // Functions of the reference (sequence_reference.h).
  void reference_rows(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;
  HostValue make_integers(const Argument& argument, const Lengths& lengths, uint64_t seed) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
