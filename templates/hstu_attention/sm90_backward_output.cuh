// Attention backward on Hopper: how a consumer warpgroup, which owns 64 lines of each tile, writes the sums of a tile.
#pragma once
#include "common/store.cuh"
#include "common/tma.cuh"
#include "hstu_attention/bias.cuh"
#include "hstu_attention/sm90_backward_shared.cuh"

namespace sm90::backward {

// A gradient as the kernel's parameters describe it.
struct Output {
  u16* data;
  i64 row_stride;
  i64 head_stride;
};

// First of this warp's 16 lines within the warpgroup's.
__device__ __forceinline__ int warp_line() { return threadIdx.x % kWarpgroup / 32 * kPieceRows; }

// First of this thread's two lines within the warpgroup's; the other is 8 further on.
__device__ __forceinline__ int thread_line() { return warp_line() + threadIdx.x % 32 / 4; }

// A warp's 16 lines of a tile, from `line` of the tile on. They go through shared memory, over the operand that they
// are the gradient of: it is no longer needed and has the layout that the copy engine stores from. Where some lines are
// past the sequence's end, and belong to the next one, they go line by line to the output.
template <class Spec, class Config, class Factors>
class TileOutput {
 public:
  // `factors`: thread_factors of the lines.
  __device__ __forceinline__ TileOutput(const TileInfo& tile, int line, const Factors& factors)
      : tile_(tile), line_(line), factors_(factors), whole_(tile.line0 + line + kPieceRows <= tile.rows) {}

  // `kept`: the operand. To be called for each gradient; then a fence, and give_back_lines().
  template <int kWidth>
  __device__ __forceinline__ void stage_or_store(const float (&sums)[kWidth / 2], const unsigned char* kept,
                                                 const Output& output) {
    u32 words[kWidth / 4];
#pragma unroll
    for (int i = 0; i < kWidth / 4; ++i) {
      const float factor = of_half(factors_, i % 2);
      words[i] = pack_pair<Spec::kDtypeBf16>(sums[2 * i] * factor, sums[2 * i + 1] * factor);
    }
    if (whole_) {
      stage_fragment<kWidth>(staged(kept), Config::kBlockM * kSwizzleBytes, words);
      return;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int line = tile_.line0 + line_ + threadIdx.x % 32 / 4 + half * 8;
      u16* to = output.data + (tile_.start + line) * output.row_stride + tile_.head * output.head_stride;
      store_fragment_row<kWidth>(to, words, half, line < tile_.rows);
    }
  }

  // All lines belong to the sequence: they are staged.
  __device__ __forceinline__ bool whole() const { return whole_; }

 private:
  __device__ __forceinline__ u32 staged(const unsigned char* kept) const {
    return shared_address(kept) + line_ * kSwizzleBytes;
  }

  const TileInfo& tile_;
  const int line_;
  const Factors factors_;
  const bool whole_;
};

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

// A consumer warp is done with its 16 lines of a tile, whose gradients are staged where they are `whole`.
template <Role kRole, class Config, class Params>
__device__ __forceinline__ void give_back_lines(Shared<Config>& shared, const Params& params, int stage, int line,
                                                bool whole) {
  if constexpr (Config::kStoreWarp) {
    release_warp<Config>(shared.kept_staged[stage]);
  } else {
    __syncwarp();
    if (whole && threadIdx.x % 32 == 0) {
      store_lines<kRole>(shared, params, stage, line);
      bulk_commit_group();
      bulk_wait_sources_read();
    }
    release_warp<Config>(shared.kept_empty[stage]);
  }
}

// Stores the tiles of columns that consumers have staged, all that lies in 16 lines of the sequence, and gives their
// buffers back. One warp.
template <class Config, class Params>
__device__ void store_tiles(Shared<Config>& shared, const Params& params) {
  Ring<Config::kKeptStages> kept;
  while (true) {
    const int stage = kept.stage();
    mbarrier_wait(shared_address(&shared.kept_full[stage]), kept.parity());
    const TileInfo& tile = shared.tile[stage];
    if (tile.role == Role::kNone) return;
    mbarrier_wait(shared_address(&shared.kept_staged[stage]), kept.parity());
    if (threadIdx.x % 32 == 0) {
      const int lines = min(tile.rows - tile.line0, Config::kBlockM);
      for (int line = 0; line + kPieceRows <= lines; line += kPieceRows) {
        store_lines<Role::kColumns>(shared, params, stage, line);
      }
      bulk_commit_group();
      bulk_wait_sources_read();
    }
    release_warp<Config>(shared.kept_empty[stage]);
    kept.advance();
  }
}

}  // namespace sm90::backward
