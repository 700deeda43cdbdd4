// The backward direction of operators over rows: beside the rows' gradients, those of vectors, which are sums over all
// rows.
#include "row/column_sums.cuh"
#include "row/group_sums.cuh"  // where GroupSums
#include "row/groups.cuh"      // where Groups
#include "row/random.cuh"      // where Random
#include "row/ring.cuh"        // where Ring
#include "row/rows.cuh"

template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  using Sums = RowSums<RowLayout<Spec, Config>, Operands, Spec::kWidth>;
  Rows<Spec, Config, Operands, Row, Sums, Params> rows(params);
  rows.run();
  if constexpr (Sums::kCount > 0) {
    rows.sums().write(params);
    if (blockIdx.x == 0 && threadIdx.x == 0) *params.partial_count = gridDim.x;
  }
}

template <class Spec, class Config, class Params>
__device__ void add_column_sums(const Params& params) {
  add_partials<Operands, Spec::kWidth>(params);
}
