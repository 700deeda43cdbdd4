// layer_norm: rows less their mean, over their deviation (docs/ops-rows.md, "layer_norm").
#pragma once

#include "compiler/spec/row_norms.h"
#include "compiler/spec/row_operator.h"

namespace hstujit {

struct LayerNormParams : RowParams {
  static constexpr std::string_view kOp = "layer_norm";

  bool weight = true;
  bool bias = true;
  bool residual = false;

  static constexpr auto fields() {
    using P = LayerNormParams;
    return std::tuple_cat(fields_of<P>(),
                          std::make_tuple(field("weight", &P::weight, "takes a weight, a factor of each column"),
                                          field("bias", &P::bias, "takes a bias, added to each column"),
                                          field("residual", &P::residual, kResidualHelp)));
  }
};

// Forward: x (L,D), [weight (D)], [bias (D)], eps (float), out (L,D). Backward: x, dout, [dresidual] (L,D), [weight],
// eps, dx (L,D), [dweight (D)], [dbias (D)].
class LayerNormSpec final : public RowOperator<LayerNormParams> {
 public:
  using RowOperator::RowOperator;

  double operations(Direction direction) const override;

  // Computes a row of the reference (row_reference.h).
  void reference_row(Direction direction, ReferenceRow& row) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
