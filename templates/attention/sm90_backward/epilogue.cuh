// Attention backward on Hopper: how a consumer warpgroup, which owns 64 rows of each tile, writes the sums of a tile.
#pragma once
#include "attention/operands/factors.cuh"
#include "attention/sm90_backward/shared.cuh"
#include "common/fragment_store.cuh"
#include "common/ptx/tma.cuh"

namespace sm90::backward {

// A gradient as the kernel's parameters describe it.
struct Output {
  u16* data;
  i64 row_stride;
  i64 head_stride;
};

// A size as an argument of which the type is all that is used.
template <int kNumber>
struct Number {
  static constexpr int kValue = kNumber;
};

// First of this warp's 16 rows within the warpgroup's.
__device__ __forceinline__ int warp_row() { return threadIdx.x % kWarpgroup / 32 * kTailBoxRows; }

// First of this thread's two rows within the warpgroup's; the other is 8 further on.
__device__ __forceinline__ int thread_row() { return warp_row() + threadIdx.x % 32 / 4; }

// Stages a warp's 16 rows of a tile, from `tile_row` of the tile on, over the operand that they are the gradient of: it
// is no longer needed and has the layout that the copy engine stores from. `factors`: thread_factors of the rows.
template <int kWidth, class Spec, class Config, class Factors>
__device__ __forceinline__ void stage_rows(const float (&sums)[kWidth / 2], const Factors& factors,
                                           const unsigned char* stationary, int tile_row) {
  u32 words[kWidth / 4];
#pragma unroll
  for (int i = 0; i < kWidth / 4; ++i) {
    const float factor = of_half(factors, i % 2);
    words[i] = pack_pair<Spec::kDtypeBf16>(sums[2 * i] * factor, sums[2 * i + 1] * factor);
  }
  stage_fragment<kWidth>(shared_address(stationary) + tile_row * kSwizzleBytes, Config::kBlockM * kSwizzleBytes, words);
}

// Copies 16 rows of an operand's tiles.
template <int kTiles, int kTileRows>
__device__ __forceinline__ void store_operand(const unsigned char* staged, int tile_row, const TensorMap& map, int head,
                                              int row) {
  const u32 from = shared_address(staged) + tile_row * kSwizzleBytes;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    store_bulk_tensor_3d(from + tile * kTileRows * kSwizzleBytes, map, tile * kSwizzleColumns, head, row);
  }
}

// Copies 16 rows of a tile, from `tile_row` of the tile on, from where its gradients are staged. By one lane.
template <Role kRole, class Config, class Params>
__device__ __forceinline__ void store_rows(const Shared<Config>& shared, const Params& params, int stage,
                                           int tile_row) {
  const TileInfo& tile = shared.tile[stage];
  const int row = static_cast<int>(tile.start) + tile.row0 + tile_row;
  const unsigned char* first = shared.stationary_first[stage];
  if constexpr (kRole == Role::kRows) {
    store_operand<Config::kQkTiles, Config::kBlockM>(first, tile_row, params.dq_map, tile.head, row);
  } else if constexpr (kRole != Role::kValues) {
    store_operand<Config::kQkTiles, Config::kBlockM>(first, tile_row, params.dk_map, tile.head, row);
  }
  if constexpr (kRole == Role::kColumns || kRole == Role::kValues) {
    store_operand<Config::kPvTiles, Config::kBlockM>(shared.stationary_second[stage], tile_row, params.dv_map,
                                                     tile.head, row);
  }
}

// The first `rows` rows of kWidth columns, without the copy engine, which knows 16 of them only. By a boxed_rows warp.
template <int kWidth, int kTileRows>
__device__ __forceinline__ void copy_operand(const unsigned char* staged, int tile_row, int rows, const Output& output,
                                             i64 row, int head) {
  constexpr int kPieces = kWidth / 8, kPiecesOfTile = kSwizzleBytes / 16;
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < rows * kPieces; i += 32) {
    const int piece = i % kPieces, from = tile_row + i / kPieces;
    const int staged_row = piece / kPiecesOfTile * kTileRows + from, swizzled = (piece ^ from) % kPiecesOfTile;
    const auto* words = reinterpret_cast<const uint4*>(staged + staged_row * kSwizzleBytes + swizzled * 16);
    u16* to = output.data + (row + i / kPieces) * output.row_stride + head * output.head_stride + piece * 8;
    *reinterpret_cast<uint4*>(to) = *words;
  }
}

// As store_rows, where the sequence ends within the 16 rows: the others belong to the next one. By a boxed_rows warp.
template <Role kRole, class Spec, class Config, class Params>
__device__ __forceinline__ void copy_rows(const Shared<Config>& shared, const Params& params, int stage, int tile_row) {
  const TileInfo& tile = shared.tile[stage];
  const int first = tile.row0 + tile_row, rows = tile.rows - first;
  const auto copy = [&](auto width, const unsigned char* staged, const Output& output) {
    copy_operand<decltype(width)::kValue, Config::kBlockM>(staged, tile_row, rows, output, tile.start + first,
                                                           tile.head);
  };
  if constexpr (kRole == Role::kRows) {
    copy(Number<Spec::kAttnDim>(), shared.stationary_first[stage],
         {params.dq, params.dq_row_stride, params.dq_head_stride});
  } else if constexpr (kRole != Role::kValues) {
    copy(Number<Spec::kAttnDim>(), shared.stationary_first[stage],
         {params.dk, params.dk_row_stride, params.dk_head_stride});
  }
  if constexpr (kRole == Role::kColumns || kRole == Role::kValues) {
    copy(Number<Spec::kHiddenDim>(), shared.stationary_second[stage],
         {params.dv, params.dv_row_stride, params.dv_head_stride});
  }
}

// A consumer warp is done with its 16 rows of a tile, whose gradients are staged.
template <Role kRole, class Spec, class Config, class Params>
__device__ __forceinline__ void release_rows(Shared<Config>& shared, const Params& params, int stage, int tile_row) {
  if constexpr (Config::kStoreWarp) {
    release_warp<Config::kLanesArrive>(shared.stationary_staged[stage]);
  } else {
    __syncwarp();
    const int rows = shared.tile[stage].rows - shared.tile[stage].row0 - tile_row;
    if (rows < kTailBoxRows) {
      copy_rows<kRole, Spec>(shared, params, stage, tile_row);
    } else if (threadIdx.x % 32 == 0) {
      store_rows<kRole>(shared, params, stage, tile_row);
      bulk_commit_group();
      bulk_wait_sources_read();
    }
    release_warp<Config::kLanesArrive>(shared.stationary_empty[stage]);
  }
}

// Stores a tile of columns that consumers have staged, and waits until its buffer may be overwritten. One warp.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void store_tile(Shared<Config>& shared, const Params& params, int stage) {
  const int rows = min(shared.tile[stage].rows - shared.tile[stage].row0, Config::kBlockM);
  const int boxed_rows = rows / kTailBoxRows * kTailBoxRows;
  if (threadIdx.x % 32 == 0) {
#pragma unroll 1
    for (int tile_row = 0; tile_row < boxed_rows; tile_row += kTailBoxRows)
      store_rows<Role::kColumns>(shared, params, stage, tile_row);
    bulk_commit_group();
  }
  if (boxed_rows < rows) copy_rows<Role::kColumns, Spec>(shared, params, stage, boxed_rows);
  if (threadIdx.x % 32 == 0) bulk_wait_sources_read();
}

// Calls what(buffer) for each tile of this CTA, from the moment when it is there.
template <class Config, class What>
__device__ __forceinline__ void follow_tiles(Shared<Config>& shared, const What& what) {
  PipelineState<Config::kStationaryStages> stationary;
  while (true) {
    mbarrier_wait(shared_address(&shared.stationary_full[stationary.stage()]), stationary.phase());
    if (shared.tile[stationary.stage()].role == Role::kNone) return;
    what(stationary);
    stationary.advance();
  }
}

// Stores tiles and gives their buffers back. One warp.
template <class Spec, class Config, class Params>
__device__ void store_tiles(Shared<Config>& shared, const Params& params) {
  follow_tiles(shared, [&](const PipelineState<Config::kStationaryStages>& stationary) {
    mbarrier_wait(shared_address(&shared.stationary_staged[stationary.stage()]), stationary.phase());
    store_tile<Spec, Config>(shared, params, stationary.stage());
    release_warp<Config::kLanesArrive>(shared.stationary_empty[stationary.stage()]);
  });
}

}  // namespace sm90::backward
