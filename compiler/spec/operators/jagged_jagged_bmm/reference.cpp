// The reference, from docs/ops-products.md.
#include "compiler/spec/gemm_reference.h"
#include "compiler/spec/operators/jagged_jagged_bmm/spec.h"

namespace hstujit {

double JaggedJaggedBmmSpec::reference_epilogue(double sum, int64_t, const std::vector<double>&) const { return sum; }

const OperatorReference& reference_jagged_jagged_bmm() { return gemm_reference<JaggedJaggedBmmSpec>(); }

}  // namespace hstujit
