// CTAs of a cluster that share the sum of one tile. Consumers leave their part of it where the stages were; then those
// of all CTAs add up some of the elements and store them. Nothing goes through global memory.
#pragma once
#include "common/sm90/cluster_partials.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/sm90/shared.cuh"

namespace gemm {

template <class Config>
__device__ __forceinline__ u32 partials_address(const Shared<Config>& shared) {
  static_assert(Config::kBlockM * sm90::kPartialRowBytes<Config::kBlockN> <= sizeof(shared.a) + sizeof(shared.b),
                "the host side accepts tiles whose sums fit where the stages were");
  return shared_address(shared.a);
}

// The whole tile: parts that all CTAs have left. `wait` returns when they have. By all consumers of the cluster.
template <class Config, class Params, class Wait>
__device__ __forceinline__ void add_cluster_partials(const Shared<Config>& shared, const Params& params,
                                                     const WorkTile& tile, const Wait& wait) {
  using Run = EpilogueRun<Epilogue>;
  constexpr int kRuns = Config::kBlockN / Run::kElements, kThreads = Config::kConsumers * kWarpgroup;
  const auto row_of = [](int i) { return i / kRuns; };
  const auto column_of = [](int i) { return i % kRuns * Run::kElements; };
  // Columns of the result come in whole runs.
  const auto inside = [&](int i) {
    return i < Config::kBlockM * kRuns && tile.row + row_of(i) < params.rows &&
           tile.column + column_of(i) < Config::kColumns;
  };
  int i = static_cast<int>(cluster_rank()) * kThreads + threadIdx.x;
  Run run;
  if (inside(i)) run.load(params, tile.row + row_of(i), tile.column + column_of(i));
  wait();
#pragma unroll 1
  for (; i < Config::kBlockM * kRuns; i += Config::kClusterK * kThreads) {
    if (!inside(i)) continue;
    const u32 address =
        partials_address<Config>(shared) + row_of(i) * sm90::kPartialRowBytes<Config::kBlockN> + column_of(i) * 4;
    const float4 low = sm90::add_partials_at(address, Config::kClusterK);
    const float4 high = sm90::add_partials_at(address + 16, Config::kClusterK);
    const float sums[Run::kElements] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    run.store(params, tile.row + row_of(i), tile.column + column_of(i), sums);
    const int next = i + Config::kClusterK * kThreads;
    if (inside(next)) run.load(params, tile.row + row_of(next), tile.column + column_of(next));
  }
}

}  // namespace gemm
