// The reference, from docs/ops-products.md.
#include "compiler/spec/gemm_reference.h"
#include "compiler/spec/operators/addmm_wgrad/spec.h"

namespace hstujit {

double AddmmWgradSpec::reference_epilogue(double sum, int64_t, const std::vector<double>& operands) const {
  return operands[0] * sum;
}

const OperatorReference& reference_addmm_wgrad() { return gemm_reference<AddmmWgradSpec>(); }

}  // namespace hstujit
