// concat_2d_jagged: of each sequence the rows of the left tensor, then those of the right one (docs/ops-sequences.md,
// "concat_2d_jagged").
#pragma once

#include "compiler/spec/operators/concat_2d_jagged/sides.h"

namespace hstujit {

// Forward: left (Ll, D) or (B*max_len_left, D), right the same, [offsets_left (B+1)], [offsets_right (B+1)],
// [max_len_left (int)], [max_len_right (int)], [n_prefix_from_right (int)], out (L, D). Backward: split_2d_jagged, of
// dout to dleft and dright.
class Concat2dJaggedSpec final : public SequenceOperator<JaggedSidesParams> {
 public:
  static constexpr std::string_view kOp = "concat_2d_jagged";
  static constexpr bool kHasWeights = false;

  explicit Concat2dJaggedSpec(JaggedSidesParams params) : SequenceOperator(kOp, std::move(params)) {}
  double operations(Direction) const override { return 1; }
  GeneratedRows generated_rows(int64_t sequence, int64_t drawn, int64_t max_seq_len) const override {
    return params_.generated_rows(sequence, drawn, max_seq_len);
  }
  std::shared_ptr<const GradientProgram> gradient() const;

  // Functions of the reference (sequence_reference.h).
  void reference_rows(Direction direction, const Lengths& lengths, std::vector<HostValue>& values) const;
  HostValue make_integers(const Argument& argument, const Lengths& lengths, uint64_t seed) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
