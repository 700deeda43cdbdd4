// rms_norm: rows over their root mean square (docs/ops-rows.md, "rms_norm").
#pragma once

#include "compiler/spec/row_norms.h"
#include "compiler/spec/row_operator.h"

namespace hstujit {

struct RmsNormParams : RowParams {
  static constexpr std::string_view kOp = "rms_norm";

  bool weight = true;
  bool silu = false;
  bool residual = false;

  static constexpr auto fields() {
    using P = RmsNormParams;
    return std::tuple_cat(fields_of<P>(),
                          std::make_tuple(field("weight", &P::weight, "takes a weight, a factor of each column"),
                                          field("silu", &P::silu, "applies silu to the result"),
                                          field("residual", &P::residual, kResidualHelp)));
  }
};

// Forward: x (L,D), [weight (D)], eps (float), out (L,D). Backward: x, dout, [dresidual] (L,D), [weight], eps, dx
// (L,D), [dweight (D)].
class RmsNormSpec final : public RowOperator<RmsNormParams> {
 public:
  using RowOperator::RowOperator;

  double operations(Direction direction) const override;

  // Computes a row of the reference (row_reference.h).
  void reference_row(Direction direction, ReferenceRow& row) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
