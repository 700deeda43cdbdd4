// The backward direction of operators over rows: beside the rows' gradients, those of vectors, which are sums over all
// rows.
#include "row/column_sums.cuh"
#include "row/rows.cuh"

template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  using Sums = ColumnSums<RowLayout<Spec, Config>, Operands, Spec::kWidth>;
  Rows<Spec, Config, Operands, Row, Sums, Params> rows(params);
  rows.run();
  if constexpr (Operands::kColumnSums > 0) {
    rows.column_sums().write(params.partials);
    if (blockIdx.x == 0 && threadIdx.x == 0) *params.partial_count = gridDim.x;
  }
}

template <class Spec, class Config, class Params>
__device__ void add_column_sums(const Params& params) {
  add_partials<Operands, Spec::kWidth>(params);
}
