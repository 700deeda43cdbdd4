// bias_add: a vector, times a number, is added to all rows (docs/ops-rows.md, "bias_add").
#pragma once

#include "compiler/spec/row_operator.h"

namespace hstujit {

struct BiasAddParams : RowParams {
  static constexpr std::string_view kOp = "bias_add";

  static constexpr auto fields() { return fields_of<BiasAddParams>(); }
};

// Forward: x (L,D), bias (D), beta (float), out (L,D). Backward: dout (L,D), beta, dbias (D); the gradient of x is dout
// itself.
class BiasAddSpec final : public RowOperator<BiasAddParams> {
 public:
  using RowOperator::RowOperator;

  double operations(Direction direction) const override { return direction == Direction::kForward ? 2 : 1; }

  // Computes a row of the reference (row_reference.h).
  void reference_row(Direction direction, ReferenceRow& row) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
