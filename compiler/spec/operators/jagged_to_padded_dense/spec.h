// jagged_to_padded_dense: the rows of each sequence, cut or padded to the same number (docs/ops-sequences.md,
// "jagged_to_padded_dense").
#pragma once

#include "compiler/spec/sequence_operator.h"

namespace hstujit {

struct JaggedToPaddedDenseParams : SequenceParams {
  bool padding_value = false;

  static constexpr auto fields() {
    using P = JaggedToPaddedDenseParams;
    return std::tuple_cat(
        fields_of<P>(),
        std::make_tuple(field("padding_value", &P::padding_value,
                              "launches take padding_value, what padding is filled with; else it is 0")));
  }
};

// Forward: values (L, D), [padding_value (float)], seq_offsets (B+1), max_len (int), out (B*max_len, D). Backward:
// dense_to_jagged, of dout to dvalues.
class JaggedToPaddedDenseSpec final : public SequenceOperator<JaggedToPaddedDenseParams> {
 public:
  static constexpr std::string_view kOp = "jagged_to_padded_dense";
  static constexpr bool kHasWeights = false;

  explicit JaggedToPaddedDenseSpec(JaggedToPaddedDenseParams params) : SequenceOperator(kOp, std::move(params)) {}
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
