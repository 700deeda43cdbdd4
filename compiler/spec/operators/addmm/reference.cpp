// The reference, from docs/ops-products.md.
#include <cmath>

#include "compiler/spec/gemm_reference.h"
#include "compiler/spec/operators/addmm/spec.h"

namespace hstujit {

double AddmmSpec::reference_epilogue(double sum, int64_t column, const std::vector<double>& operands) const {
  const double product = operands[0] * sum;
  const double element = operands.size() == 1 ? product : product + operands[2] * operands[1];
  return column < params_.silu_columns ? element / (1 + std::exp(-element)) : element;
}

const OperatorReference& reference_addmm() { return gemm_reference<AddmmSpec>(); }

}  // namespace hstujit
