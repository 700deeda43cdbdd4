// take_last_rows: the last rows of each sequence, as many as it has in other offsets (docs/ops-sequences.md,
// "take_last_rows").
#pragma once

#include "compiler/spec/sequence_operator.h"

namespace hstujit {

// Forward: values (L, D), seq_offsets (B+1), seq_offsets_q (B+1), out (Lq, D). Backward: place_last_rows, of dout to
// dvalues.
class TakeLastRowsSpec final : public SequenceOperator<SequenceParams> {
 public:
  static constexpr std::string_view kOp = "take_last_rows";
  static constexpr bool kHasWeights = false;

  explicit TakeLastRowsSpec(SequenceParams params) : SequenceOperator(kOp, std::move(params)) {}
  double operations(Direction) const override { return 0; }
  GeneratedRows generated_rows(int64_t sequence, int64_t drawn, int64_t max_seq_len) const override;
  std::shared_ptr<const GradientProgram> gradient() const;

  // Computes the reference (sequence_reference.h).
  void reference_rows(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
