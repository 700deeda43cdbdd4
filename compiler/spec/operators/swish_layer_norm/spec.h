// swish_layer_norm: rows, gated by their own layer norm (docs/ops-rows.md, "swish_layer_norm").
#pragma once

#include "compiler/spec/row_operator.h"

namespace hstujit {

struct SwishLayerNormParams : RowParams {
  static constexpr std::string_view kOp = "swish_layer_norm";

  bool weight = true;
  bool bias = true;

  static constexpr auto fields() {
    using P = SwishLayerNormParams;
    return std::tuple_cat(
        fields_of<P>(),
        std::make_tuple(field("weight", &P::weight, "takes a weight, a factor of each normalised column"),
                        field("bias", &P::bias, "takes a bias, added to each normalised column")));
  }
};

// Forward: x (L,D), [weight (D)], [bias (D)], eps (float), out (L,D). Backward: x, dout (L,D), [weight], [bias], eps,
// dx (L,D), [dweight (D)], [dbias (D)].
class SwishLayerNormSpec final : public RowOperator<SwishLayerNormParams> {
 public:
  using RowOperator::RowOperator;

  double operations(Direction direction) const override { return direction == Direction::kForward ? 18 : 28; }

  // Computes a row of the reference (row_reference.h).
  void reference_row(Direction direction, ReferenceRow& row) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
