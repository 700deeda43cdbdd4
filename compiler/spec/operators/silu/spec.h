// silu: x * sigmoid(x) of each element (docs/ops-rows.md, "silu").
#pragma once

#include "compiler/spec/row_operator.h"

namespace hstujit {

struct SiluParams : RowParams {
  static constexpr std::string_view kOp = "silu";

  static constexpr auto fields() {
    using P = SiluParams;
    return std::make_tuple(
        field("width", &P::width, "elements of a row", 1, kMaxWidth),
        field("dtype", &P::dtype, "data type of rows").one_of("bf16 fp16 fp32"),
        field("alignment", &P::alignment, "bytes that data pointers and strides are multiples of").one_of("2 4 8 16"));
  }
};

// Forward: x, out (L,D). Backward: x, dout, dx (L,D).
class SiluSpec final : public RowOperator<SiluParams> {
 public:
  using RowOperator::RowOperator;

  double operations(Direction direction) const override { return direction == Direction::kForward ? 4 : 8; }

  // Computes a row of the reference (row_reference.h).
  void reference_row(Direction direction, ReferenceRow& row) const;

 protected:
  RowInterface forward_interface() const override;
};

}  // namespace hstujit
