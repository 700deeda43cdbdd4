// The reference, from docs/ops-products.md.
#include "compiler/spec/gemm_reference.h"
#include "compiler/spec/operators/jagged_dense_bmm_broadcast_add/spec.h"

namespace hstujit {

double JaggedDenseBmmBroadcastAddSpec::reference_epilogue(double sum, int64_t,
                                                          const std::vector<double>& operands) const {
  return operands.empty() ? sum : sum + operands[0];
}

const OperatorReference& reference_jagged_dense_bmm_broadcast_add() {
  return gemm_reference<JaggedDenseBmmBroadcastAddSpec>();
}

}  // namespace hstujit
