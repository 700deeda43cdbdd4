// The producer: one lane, which asks the copy engine for the factors of every stage.
#pragma once
#include "gemm/sm90/shared.cuh"
#include "gemm/sm90/tile_scheduler.cuh"

namespace gemm {

template <class Config, class Params>
__device__ __forceinline__ void load_stage(Shared<Config>& shared, const Params& params, const WorkTile& tile,
                                           int stage, i64 depth) {
  const u32 full = shared_address(&shared.full[stage]);
  mbarrier_arrive_expect_tx(full, Stage<Config>::kABytes + Stage<Config>::kBBytes);
  const int at = static_cast<int>(depth * kDepth), row = static_cast<int>(tile.row);
  const u32 a = shared_address(shared.a[stage]), b = shared_address(shared.b[stage]);
  if constexpr (Config::kATransposed) {
#pragma unroll
    for (int i = 0; i < Config::kBlockM / kDepth; ++i)
      cp_async_bulk_tensor_2d(a + i * kDepth * kSwizzleBytes, params.a_map, full, row + i * kDepth, at);
  } else {
    cp_async_bulk_tensor_2d(a, params.a_map, full, at, row);
  }
  if constexpr (Config::kBTransposed) {
    cp_async_bulk_tensor_2d(b, params.b_map, full, at, tile.column);
  } else {
#pragma unroll
    for (int i = 0; i < Stage<Config>::kColumnTiles; ++i)
      cp_async_bulk_tensor_2d(b + i * kDepth * kSwizzleBytes, params.b_map, full, tile.column + i * kDepth, at);
  }
}

template <class Config, class Params>
__device__ __forceinline__ void produce(Shared<Config>& shared, const Params& params,
                                        const TileScheduler<Config>& scheduler) {
  sm90::PipelineState<Config::kStages> pipeline;
  for (i64 number = blockIdx.x; number < scheduler.count(); number += gridDim.x) {
    const WorkTile tile = scheduler.tile(number);
    for (i64 depth = tile.first; depth < tile.end; ++depth) {
      mbarrier_wait(shared_address(&shared.empty[pipeline.stage()]), pipeline.phase() ^ 1);
      load_stage<Config>(shared, params, tile, pipeline.stage(), depth);
      pipeline.advance();
    }
  }
}

}  // namespace gemm
