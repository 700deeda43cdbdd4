// The backward direction of operators that find rows of tables, as row/table_backward is, in one pass over the rows and
// without a sort. In the order of the kernels:
//
//   kernel_main    zeros for all sums, and for the count of units that are taken
//   add_tiles      the rows' gradients, and the tables' sums: a CTA keeps those of rows that it finds again and again, and
//                  adds them to memory when it has found others
//   round_sums     tables that are not of fp32
//
// Sums are in fp32. Additions of CTAs come in any order, so the last bits of a table differ from launch to launch.
#include "row/table_backward_atomic/walk.cuh"

template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  using Walk = TileWalk<Spec, Config, Operands, Row, Params>;
  i64 counts[Walk::Sums::kCount];
  Walk::Sums::counts(params, counts);
  TableTotals totals[Walk::Sums::kCount];
  Walk::get_totals(params, totals);
  if (blockIdx.x == 0 && threadIdx.x == 0) *params.unit_count = 0;
  TableRowSums<typename Walk::Layout> zeros;
  zeros.clear();
  for_each_table_row<typename Walk::Layout>(
      counts, [&](int table, i64 row) { zeros.leave(totals[table].row(row)); });
}

template <class Spec, class Config, class Params>
__device__ void add_tiles(const Params& params) {
  using Walk = TileWalk<Spec, Config, Operands, Row, Params>;
  __shared__ __align__(16) unsigned char static_bytes[Walk::kSharedBytes];
  Walk(params, static_bytes).run();
}

template <class Spec, class Config, class Params>
__device__ void round_sums(const Params& params) {
  using Walk = TileWalk<Spec, Config, Operands, Row, Params>;
  using Sums = typename Walk::Sums;
  void* data[Sums::kCount];
  i64 strides[Sums::kCount], counts[Sums::kCount];
  Sums::rows(params, data, strides);
  Sums::counts(params, counts);
  TableTotals totals[Sums::kCount];
  Walk::get_totals(params, totals);
  for_each_table_row<typename Walk::Layout>(counts, [&](int table, i64 row) {
    TableRowSums<typename Walk::Layout> sums;
    sums.clear();
    sums.add(totals[table].row(row));
    sums.template round_to<typename Operands::Table>(static_cast<unsigned char*>(data[table]) +
                                                     row * strides[table] * Operands::Table::kBytes);
  });
}
