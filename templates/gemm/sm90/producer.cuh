// The producer: one lane, which asks the copy engine for the factors of every stage.
#pragma once
#include "gemm/sm90/shared.cuh"

namespace gemm {

// `sequence`: whose matrix it is, where each has one.
template <class Config>
__device__ __forceinline__ void load_columns(u32 to, const TensorMap& map, u32 full, int column, int row,
                                             int sequence) {
  if constexpr (kRowsOfSequences<Config>) {
    cp_async_bulk_tensor_3d(to, map, full, column, row, sequence);
  } else if constexpr (Config::kCluster == 1) {
    cp_async_bulk_tensor_2d(to, map, full, column, row);
  } else {
    cp_async_bulk_tensor_2d_multicast(to, map, full, column, row, (1 << Config::kCluster) - 1);
  }
}

template <class Config, class Params>
__device__ __forceinline__ void load_stage(Shared<Config>& shared, const Params& params, const WorkTile& tile,
                                           int stage, i64 depth) {
  const u32 full = shared_address(&shared.full[stage]);
  mbarrier_arrive_expect_tx(full, Stage<Config>::kABytes + Stage<Config>::kBBytes);
  const i64 begin = kSumsOfSequences<Config> ? tile.rows_begin : 0;
  const int at = static_cast<int>(begin + depth * kDepth), row = static_cast<int>(tile.row);
  const u32 a = shared_address(shared.a[stage]), b = shared_address(shared.b[stage]);
  if constexpr (Config::kATransposed) {
#pragma unroll
    for (int i = 0; i < Config::kBlockM / kDepth; ++i)
      cp_async_bulk_tensor_2d(a + i * kDepth * kSwizzleBytes, params.a_map, full, row + i * kDepth, at);
  } else {
    cp_async_bulk_tensor_2d(a, params.a_map, full, at, row);
  }
  // This CTA's share of the columns, for all of its cluster.
  if constexpr (Config::kBTransposed) {
    constexpr int kColumns = Config::kBlockN / Config::kCluster;
    const int first = cluster_share<Config>() * kColumns;
    load_columns<Config>(b + first * kSwizzleBytes, params.b_map, full, at, tile.column + first, tile.sequence);
  } else {
    constexpr int kTiles = Stage<Config>::kColumnTiles / Config::kCluster;
    const int first = cluster_share<Config>() * kTiles;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      load_columns<Config>(b + (first + i) * kDepth * kSwizzleBytes, params.b_map, full,
                           tile.column + (first + i) * kDepth, at, tile.sequence);
    }
  }
}

template <class Config, class Params>
__device__ __forceinline__ void produce(Shared<Config>& shared, const Params& params,
                                        const TileScheduler<Config>& scheduler) {
  sm90::PipelineState<Config::kStages> pipeline;
  for (i64 number = scheduler.first(); number < scheduler.count(); number += scheduler.step()) {
    const WorkTile tile = scheduler.tile(number);
#pragma unroll 1
    for (i64 depth = tile.first; depth < tile.end; ++depth) {
      mbarrier_wait(shared_address(&shared.empty[pipeline.stage()]), pipeline.phase() ^ 1);
      load_stage<Config>(shared, params, tile, pipeline.stage(), depth);
      pipeline.advance();
    }
  }
}

// Producer of products of sequences. All lanes of a warp find tiles; the first one loads.
template <class Config, class Params>
__device__ __forceinline__ void produce_sequences(Shared<Config>& shared, const Params& params) {
  SequenceTiles<Config, Params> tiles(params);
  sm90::PipelineState<Config::kStages> pipeline, queue;
  bool found;
  do {
    WorkTile tile;
    found = tiles.next(tile);
    if (threadIdx.x % 32 == 0) {
      if (!found) tile.sequence = -1;
      const int slot = queue.stage();
      mbarrier_wait(shared_address(&shared.tile_empty[slot]), queue.phase() ^ 1);
      shared.tiles[slot] = tile;
      mbarrier_arrive(shared_address(&shared.tile_full[slot]));
      queue.advance();
#pragma unroll 1
      for (i64 depth = 0; found && depth < tile.end; ++depth) {
        mbarrier_wait(shared_address(&shared.empty[pipeline.stage()]), pipeline.phase() ^ 1);
        load_stage<Config>(shared, params, tile, pipeline.stage(), depth);
        pipeline.advance();
      }
    }
    __syncwarp();
  } while (found);
}

}  // namespace gemm
