// CTAs of a cluster that share the sum of one tile. Consumers leave their part of it where the stages were; then those
// of all CTAs add up some of the elements and store them. Nothing goes through global memory.
#pragma once
#include "common/schedule/cluster_partials.cuh"
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
  constexpr int kElements = 4;  // of a run: neighbouring threads read neighbours
  constexpr int kTogether = 2;  // runs of a thread, so that their reads are on their way at the same time
  constexpr int kRunsOfRow = Config::kBlockN / kElements, kRuns = Config::kBlockM * kRunsOfRow;
  constexpr int kThreads = Config::kClusterK * Config::kConsumers * kWarpgroup;
  struct Place {
    int row, column;  // of the tile
    bool inside;      // of the result
  };
  const auto place_of = [&](int run) {
    const int row = run / kRunsOfRow, column = run % kRunsOfRow * kElements;
    // Columns of the result come in whole runs.
    return Place{row, column, run < kRuns && tile.row + row < params.rows && tile.column + column < Config::kColumns};
  };
  const int first = static_cast<int>(cluster_rank()) * (kThreads / Config::kClusterK) + threadIdx.x;
  EpilogueRun<Config, Epilogue, kElements> runs[kTogether];
  const auto load = [&](int begin) {
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const Place place = place_of(begin + i * kThreads);
      if (place.inside) runs[i].load(params, tile.row + place.row, tile.column + place.column);
    }
  };
  load(first);
  wait();
#pragma unroll 1
  for (int begin = first; begin < kRuns; begin += kTogether * kThreads) {
    if (begin != first) load(begin);
    float4 totals[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const Place place = place_of(begin + i * kThreads);
      const u32 row = partials_address<Config>(shared) + place.row * sm90::kPartialRowBytes<Config::kBlockN>;
      if (place.inside) totals[i] = sm90::add_partials_at(row + place.column * 4, Config::kClusterK);
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const Place place = place_of(begin + i * kThreads);
      const float sums[kElements] = {totals[i].x, totals[i].y, totals[i].z, totals[i].w};
      if (place.inside) runs[i].store(params, tile.row + place.row, tile.column + place.column, sums);
    }
  }
}

}  // namespace gemm
