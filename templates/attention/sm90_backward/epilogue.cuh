// Attention backward on Hopper: how a consumer warpgroup, which owns 64 lines of each tile, writes the sums of a tile.
#pragma once
#include "attention/bias.cuh"
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

// First of this warp's 16 lines within the warpgroup's.
__device__ __forceinline__ int warp_line() { return threadIdx.x % kWarpgroup / 32 * kTailBoxRows; }

// First of this thread's two lines within the warpgroup's; the other is 8 further on.
__device__ __forceinline__ int thread_line() { return warp_line() + threadIdx.x % 32 / 4; }

// Stages a warp's 16 lines of a tile, from `line` of the tile on, over the operand that they are the gradient of: it is
// no longer needed and has the layout that the copy engine stores from. `factors`: thread_factors of the lines.
template <int kWidth, class Spec, class Config, class Factors>
__device__ __forceinline__ void stage_lines(const float (&sums)[kWidth / 2], const Factors& factors,
                                            const unsigned char* kept, int line) {
  u32 words[kWidth / 4];
#pragma unroll
  for (int i = 0; i < kWidth / 4; ++i) {
    const float factor = of_half(factors, i % 2);
    words[i] = pack_pair<Spec::kDtypeBf16>(sums[2 * i] * factor, sums[2 * i + 1] * factor);
  }
  stage_fragment<kWidth>(shared_address(kept) + line * kSwizzleBytes, Config::kBlockM * kSwizzleBytes, words);
}

// Copies 16 lines of an operand's tiles.
template <int kTiles, int kTileLines>
__device__ __forceinline__ void store_operand(const unsigned char* staged, int line, const TensorMap& map, int head,
                                              int row) {
  const u32 from = shared_address(staged) + line * kSwizzleBytes;
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    store_bulk_tensor_3d(from + tile * kTileLines * kSwizzleBytes, map, tile * kSwizzleColumns, head, row);
  }
}

// Copies 16 lines of a tile, from `line` of the tile on, from where its gradients are staged. By one lane.
template <Role kRole, class Config, class Params>
__device__ __forceinline__ void store_lines(const Shared<Config>& shared, const Params& params, int stage, int line) {
  const TileInfo& tile = shared.tile[stage];
  const int row = static_cast<int>(tile.start) + tile.line0 + line;
  const unsigned char* first = shared.kept_first[stage];
  if constexpr (kRole == Role::kRows) {
    store_operand<Config::kQkTiles, Config::kBlockM>(first, line, params.dq_map, tile.head, row);
  } else if constexpr (kRole != Role::kValues) {
    store_operand<Config::kQkTiles, Config::kBlockM>(first, line, params.dk_map, tile.head, row);
  }
  if constexpr (kRole == Role::kColumns || kRole == Role::kValues) {
    store_operand<Config::kPvTiles, Config::kBlockM>(shared.kept_second[stage], line, params.dv_map, tile.head, row);
  }
}

// The first `lines` lines of kWidth columns, without the copy engine, which knows 16 of them only. By a whole warp.
template <int kWidth, int kTileLines>
__device__ __forceinline__ void copy_operand(const unsigned char* staged, int line, int lines, const Output& output,
                                             i64 row, int head) {
  constexpr int kPieces = kWidth / 8, kPiecesOfTile = kSwizzleBytes / 16;
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < lines * kPieces; i += 32) {
    const int piece = i % kPieces, from = line + i / kPieces;
    const int place = piece / kPiecesOfTile * kTileLines + from, swizzled = (piece ^ from) % kPiecesOfTile;
    const auto* words = reinterpret_cast<const uint4*>(staged + place * kSwizzleBytes + swizzled * 16);
    u16* to = output.data + (row + i / kPieces) * output.row_stride + head * output.head_stride + piece * 8;
    *reinterpret_cast<uint4*>(to) = *words;
  }
}

// As store_lines, where the sequence ends within the 16 lines: the others belong to the next one. By a whole warp.
template <Role kRole, class Spec, class Config, class Params>
__device__ __forceinline__ void copy_lines(const Shared<Config>& shared, const Params& params, int stage, int line) {
  const TileInfo& tile = shared.tile[stage];
  const int first = tile.line0 + line, lines = tile.rows - first;
  const auto copy = [&](auto width, const unsigned char* staged, const Output& output) {
    copy_operand<decltype(width)::kValue, Config::kBlockM>(staged, line, lines, output, tile.start + first, tile.head);
  };
  if constexpr (kRole == Role::kRows) {
    copy(Number<Spec::kAttnDim>(), shared.kept_first[stage], {params.dq, params.dq_row_stride, params.dq_head_stride});
  } else if constexpr (kRole != Role::kValues) {
    copy(Number<Spec::kAttnDim>(), shared.kept_first[stage], {params.dk, params.dk_row_stride, params.dk_head_stride});
  }
  if constexpr (kRole == Role::kColumns || kRole == Role::kValues) {
    copy(Number<Spec::kHiddenDim>(), shared.kept_second[stage],
         {params.dv, params.dv_row_stride, params.dv_head_stride});
  }
}

// A consumer warp is done with its 16 lines of a tile, whose gradients are staged.
template <Role kRole, class Spec, class Config, class Params>
__device__ __forceinline__ void give_back_lines(Shared<Config>& shared, const Params& params, int stage, int line) {
  if constexpr (Config::kStoreWarp) {
    release_warp<Config>(shared.kept_staged[stage]);
  } else {
    __syncwarp();
    const int lines = shared.tile[stage].rows - shared.tile[stage].line0 - line;
    if (lines < kTailBoxRows) {
      copy_lines<kRole, Spec>(shared, params, stage, line);
    } else if (threadIdx.x % 32 == 0) {
      store_lines<kRole>(shared, params, stage, line);
      bulk_commit_group();
      bulk_wait_sources_read();
    }
    release_warp<Config>(shared.kept_empty[stage]);
  }
}

// Stores a tile of columns that consumers have staged, and waits until its buffer may be overwritten. One warp.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void store_tile(Shared<Config>& shared, const Params& params, int stage) {
  const int lines = min(shared.tile[stage].rows - shared.tile[stage].line0, Config::kBlockM);
  const int whole = lines / kTailBoxRows * kTailBoxRows;
  if (threadIdx.x % 32 == 0) {
#pragma unroll 1
    for (int line = 0; line < whole; line += kTailBoxRows) store_lines<Role::kColumns>(shared, params, stage, line);
    bulk_commit_group();
  }
  if (whole < lines) copy_lines<Role::kColumns, Spec>(shared, params, stage, whole);
  if (threadIdx.x % 32 == 0) bulk_wait_sources_read();
}

// Calls what(buffer) for each tile that this block keeps, from the moment when it is there.
template <class Config, class What>
__device__ __forceinline__ void follow_tiles(Shared<Config>& shared, const What& what) {
  PipelineState<Config::kKeptStages> kept;
  while (true) {
    mbarrier_wait(shared_address(&shared.kept_full[kept.stage()]), kept.phase());
    if (shared.tile[kept.stage()].role == Role::kNone) return;
    what(kept);
    kept.advance();
  }
}

// Stores tiles and gives their buffers back. One warp.
template <class Spec, class Config, class Params>
__device__ void store_tiles(Shared<Config>& shared, const Params& params) {
  follow_tiles(shared, [&](const PipelineState<Config::kKeptStages>& kept) {
    mbarrier_wait(shared_address(&shared.kept_staged[kept.stage()]), kept.phase());
    store_tile<Spec, Config>(shared, params, kept.stage());
    release_warp<Config>(shared.kept_empty[kept.stage()]);
  });
}

}  // namespace sm90::backward
