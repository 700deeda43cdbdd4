// The reference, from docs/ops.md.
#include "compiler/spec/operators/addmm/spec.h"

namespace hstujit {

double AddmmSpec::reference_epilogue(double sum, const std::vector<double>& operands) const {
  const double product = operands[0] * sum;
  return operands.size() == 1 ? product : product + operands[2] * operands[1];
}

}  // namespace hstujit
