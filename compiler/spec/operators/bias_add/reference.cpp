// The float64 reference of one row, from docs/ops-rows.md.
#include "compiler/spec/operators/bias_add/spec.h"
#include "compiler/spec/row_reference.h"

namespace hstujit {

void BiasAddSpec::reference_row(Direction direction, ReferenceRow& row) const {
  const double beta = row.scalar("beta");
  if (direction == Direction::kForward) {
    const std::span<const double> x = row.input("x"), bias = row.input("bias");
    const std::span<double> out = row.output("out");
    for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] + beta * bias[i];
    return;
  }
  const std::span<const double> dout = row.input("dout");
  const std::span<double> dbias = row.output("dbias");
  for (size_t i = 0; i < dout.size(); ++i) dbias[i] = beta * dout[i];
}

const OperatorReference& reference_bias_add() { return row_reference<BiasAddSpec>(); }

}  // namespace hstujit
