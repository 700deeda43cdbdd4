// place_last_rows: rows at the end of each sequence, behind rows of zeros; the inverse of take_last_rows
// (docs/ops-sequences.md, "place_last_rows").
#pragma once

#include "compiler/spec/sequence_operator.h"

namespace hstujit {

// Forward: values (Lq, D), seq_offsets (B+1), seq_offsets_q (B+1), out (L, D). Backward: take_last_rows, of dout to
// dvalues.
class PlaceLastRowsSpec final : public SequenceOperator<SequenceParams> {
 public:
  static constexpr std::string_view kOp = "place_last_rows";
  static constexpr bool kHasWeights = false;

  explicit PlaceLastRowsSpec(SequenceParams params) : SequenceOperator(kOp, std::move(params)) {}
  double operations(Direction) const override { return 0; }
  GeneratedRows generated_rows(int64_t sequence, int64_t drawn, int64_t max_seq_len) const override;
  std::shared_ptr<const GradientProgram> gradient() const;

  // Computes the reference (sequence_reference.h).
  void reference_rows(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
