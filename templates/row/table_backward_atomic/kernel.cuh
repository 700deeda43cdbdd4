// The backward direction of operators that find rows of tables, as row/table_backward is, in one pass over the rows and
// without a sort, on Hopper. A producer warp asks the copy engine for tiles of rows. Consumer warps write the rows'
// gradients, keep the sums of rows of tables that are found again and again, and add them to memory when others are
// found. A second kernel rounds the sums to the type of the tables:
//
//   kernel_main    the rows' gradients, and the tables' sums in a workspace
//   round_sums     the tables
//
// Sums are in fp32. Additions of CTAs come in any order, so the last bits of a table differ from launch to launch.
#include "row/table_backward_atomic/consumer.cuh"
#include "row/table_backward_atomic/producer.cuh"

template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  using Consumer = TileConsumer<Spec, Config, Operands, Row, Params>;
  using Layout = typename Consumer::Layout;
  using Shared = typename Consumer::Shared;
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  static_assert(sizeof(Shared) <= Config::kSharedBytes && Config::kSharedBytes - sizeof(Shared) < 128,
                "the host side and the template disagree on shared memory");
  Shared& shared = *reinterpret_cast<Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Shared::kStages; ++i) {
      mbarrier_init(shared_address(&shared.full[i]), kFullArrivals<Config>);
      mbarrier_init(shared_address(&shared.empty[i]),
                    Layout::kThreads / 32 * sm90::kArrivalsPerWarp<Config::kLanesArrive>);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x >= Layout::kThreads) {
    TileProducer<Layout, Config, Operands, Params>(params, shared).run();
  } else {
    Consumer(params, shared).run();
  }
}

template <class Spec, class Config, class Params>
__device__ void round_sums(const Params& params) {
  using Consumer = TileConsumer<Spec, Config, Operands, Row, Params>;
  using Sums = typename Consumer::Sums;
  void* data[Sums::kCount];
  i64 strides[Sums::kCount], counts[Sums::kCount];
  Sums::rows(params, data, strides);
  Sums::counts(params, counts);
  TableTotals totals[Sums::kCount];
  Consumer::get_totals(params, totals);
  for_each_table_row<typename Consumer::Layout>(counts, [&](int table, i64 row) {
    TableRowSums<typename Consumer::Layout> sums;
    sums.clear();
    sums.add(totals[table].row(row));
    sums.template round_to<typename Operands::Table>(static_cast<unsigned char*>(data[table]) +
                                                     row * strides[table] * Operands::Table::kBytes);
  });
}
