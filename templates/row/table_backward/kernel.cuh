// The backward direction of operators that find rows of tables: beside the rows' gradients those of the tables, each
// row of which is a sum over the rows that found it. In the order of the kernels:
//
//   kernel_main                the key of each row, for each table: which of the table's rows it found
//   clear_tables               zeros for rows that none found
//   sum_counts, order_rows     a pass of a sort by key
//   count_rows, sum_counts, order_rows    a second one, of a table with many rows
//   walk_table, finish_table   the sums of a table, and those of runs that several CTAs had
//
// All sums are in fp32 and in an order that follows from the sizes alone: the same call gives the same bits, and a row
// that all others find costs no more than another.
#include "row/table_backward/walk.cuh"

template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  for_each_chunk(params.rows, 1, [&](int chunk) { write_keys<Operands>(params, chunk); });
}

template <class Spec, class Config, class Params>
__device__ void clear_tables(const Params& params) {
  using Sums = typename Operands::TableSums;
  using Layout = RowLayout<Spec, Config>;
  void* data[Sums::kCount];
  i64 strides[Sums::kCount], counts[Sums::kCount];
  Sums::rows(params, data, strides);
  Sums::counts(params, counts);
  TableRowSums<Layout> zeros;
  zeros.clear();
  for_each_table_row<Layout>(counts, [&](int table, i64 row) {
    zeros.template round_to<typename Operands::Table>(static_cast<unsigned char*>(data[table]) +
                                                      row * strides[table] * Operands::Table::kBytes);
  });
}

// The first pass is over all tables, whose CTAs take turns; a second one over one that has more rows than there are
// digits.
template <class Spec, class Config, class Params>
__device__ void sum_counts(const Params& params) {
  constexpr int kTables = Operands::TableSums::kCount;
  sum_histograms(KeyRegions(params, blockIdx.x % kTables), blockIdx.x / kTables, params.rows);
}
template <class Spec, class Config, class Params>
__device__ void order_rows(const Params& params) {
  constexpr int kTables = Operands::TableSums::kCount;
  for_each_chunk(params.rows, kTables,
                 [&](int i) { put_in_order(KeyRegions(params, i % kTables), 0, i / kTables, params.rows); });
}

template <class Spec, class Config, class Params>
__device__ void count_rows_0(const Params& params) {
  for_each_chunk(params.rows, 1, [&](int chunk) { count_digits(KeyRegions(params, 0), chunk, params.rows); });
}
template <class Spec, class Config, class Params>
__device__ void sum_counts_0(const Params& params) {
  sum_histograms(KeyRegions(params, 0), blockIdx.x, params.rows);
}
template <class Spec, class Config, class Params>
__device__ void order_rows_0(const Params& params) {
  for_each_chunk(params.rows, 1, [&](int chunk) { put_in_order(KeyRegions(params, 0), 1, chunk, params.rows); });
}
template <class Spec, class Config, class Params>
__device__ void count_rows_1(const Params& params) {
  for_each_chunk(params.rows, 1, [&](int chunk) { count_digits(KeyRegions(params, 1), chunk, params.rows); });
}
template <class Spec, class Config, class Params>
__device__ void sum_counts_1(const Params& params) {
  sum_histograms(KeyRegions(params, 1), blockIdx.x, params.rows);
}
template <class Spec, class Config, class Params>
__device__ void order_rows_1(const Params& params) {
  for_each_chunk(params.rows, 1, [&](int chunk) { put_in_order(KeyRegions(params, 1), 1, chunk, params.rows); });
}

template <class Spec, class Config, class Params>
__device__ void walk_table_0(const Params& params) {
  TableWalk<Spec, Config, Operands, Row, Params, 0>(params).run();
}
template <class Spec, class Config, class Params>
__device__ void finish_table_0(const Params& params) {
  TableWalk<Spec, Config, Operands, Row, Params, 0>(params).finish();
}
template <class Spec, class Config, class Params>
__device__ void walk_table_1(const Params& params) {
  TableWalk<Spec, Config, Operands, Row, Params, 1>(params).run();
}
template <class Spec, class Config, class Params>
__device__ void finish_table_1(const Params& params) {
  TableWalk<Spec, Config, Operands, Row, Params, 1>(params).finish();
}
