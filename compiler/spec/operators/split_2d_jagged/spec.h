// split_2d_jagged: the first rows of each sequence to the left tensor, the others to the right one
// (docs/ops-sequences.md, "split_2d_jagged").
#pragma once

#include "compiler/spec/operators/concat_2d_jagged/sides.h"

namespace hstujit {

struct SplitParams : JaggedSidesParams {
  bool left_only = false;

  static constexpr auto fields() {
    using P = SplitParams;
    return std::tuple_cat(fields_of<P>(), std::make_tuple(field("left_only", &P::left_only,
                                                                "the rows of the right side are written nowhere")));
  }
};

// Forward: values (L, D), [offsets_left (B+1)], [offsets_right (B+1)], [max_len_left (int)], [max_len_right (int)],
// [n_prefix_to_right (int)], left (Ll, D) or (B*max_len_left, D), [right], the same. Backward: concat_2d_jagged, of
// dleft and dright to dvalues; none with left_only, which goes through the rows of the left side alone.
class Split2dJaggedSpec final : public SequenceOperator<SplitParams> {
 public:
  static constexpr std::string_view kOp = "split_2d_jagged";
  static constexpr bool kHasWeights = false;

  explicit Split2dJaggedSpec(SplitParams params) : SequenceOperator(kOp, std::move(params)) {}
  double operations(Direction) const override { return 0; }
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
