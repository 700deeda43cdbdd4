// The float64 reference of one row, from docs/ops-rows.md.
#include "compiler/spec/operators/silu/spec.h"
#include "compiler/spec/row_norms.h"
#include "compiler/spec/row_reference.h"

namespace hstujit {

void SiluSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const std::span<const double> x = row.input("x");
  if (direction == Direction::kForward) {
    const std::span<double> out = row.output("out");
    for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] * sigmoid(x[i]);
    return;
  }
  const std::span<const double> dout = row.input("dout");
  const std::span<double> dx = row.output("dx");
  for (size_t i = 0; i < x.size(); ++i) dx[i] = dout[i] * silu_slope(x[i]);
}

const OperatorReference& reference_silu() { return row_reference<SiluSpec>(); }

}  // namespace hstujit
