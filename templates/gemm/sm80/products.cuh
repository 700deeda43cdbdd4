// The products of a tile: stages of both factors follow one another through shared memory.
#pragma once
#include "gemm/sm80/column_sums.cuh"
#include "gemm/sm80/load.cuh"
#include "gemm/sm80/products_16bit.cuh"  // where Mma16bit
#include "gemm/sm80/products_ieee.cuh"   // where Simt
#include "gemm/sm80/products_tf32.cuh"   // where MmaTf32

namespace gemm {

// All threads of the CTA call.
template <class Config, class Params>
__device__ __forceinline__ void multiply_tile(Shared<Config>& shared, const Params& params, const WorkTile& tile,
                                              typename WarpTile<Config>::Sums& sums) {
  constexpr int kAhead = Config::kStages - 1;
#pragma unroll
  for (auto& rows : sums) {
#pragma unroll
    for (auto& block : rows) {
#pragma unroll
      for (float& sum : block) sum = 0;
    }
  }
  ColumnSums<Config> column_sums;
  bool has_sums = false;
  if constexpr (Config::kColumnSums) has_sums = column_share<Config>(tile) == 0;
  __syncthreads();  // all have read the stages of the tile before
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    if (tile.first + i < tile.end) load_stage<Config>(shared, params, tile, i, tile.first + i);
    cp_async_commit_group();
  }
  int stage = 0;
#pragma unroll 1
  for (i64 depth = tile.first; depth < tile.end; ++depth) {
    cp_async_wait_group<kAhead - 1>();
    __syncthreads();  // the stage is there for all, and all have read the one before
    if (depth + kAhead < tile.end) {
      const int free = stage == 0 ? kAhead : stage - 1;
      load_stage<Config>(shared, params, tile, free, depth + kAhead);
    }
    cp_async_commit_group();
    multiply_stage<Config>(shared_address(shared.a[stage]), shared_address(shared.b[stage]), sums);
    if constexpr (Config::kColumnSums) {
      if (has_sums) column_sums.add(shared, stage);
    }
    stage = stage + 1 == Config::kStages ? 0 : stage + 1;
  }
  cp_async_wait_group<0>();
  if constexpr (Config::kColumnSums) {
    if (has_sums) column_sums.store(shared, params, tile);
  }
}

}  // namespace gemm
