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

  // `kept`: the operand. To be called for each gradient, then send() with a copy() for each.
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

  // Lets one lane do the copies, and waits until what they read may be overwritten.
  template <class Copies>
  __device__ __forceinline__ void send(const Copies& copies) {
    if (!whole_) return;
    fence_proxy_async();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      copies();
      bulk_commit_group();
      bulk_wait_sources_read();
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void copy(const unsigned char* kept, const TensorMap& map) {
    const int row = static_cast<int>(tile_.start) + tile_.line0 + line_;
#pragma unroll
    for (int part = 0; part < kTiles; ++part) {
      store_bulk_tensor_3d(staged(kept) + part * Config::kBlockM * kSwizzleBytes, map, part * kSwizzleColumns,
                           tile_.head, row);
    }
  }

 private:
  __device__ __forceinline__ u32 staged(const unsigned char* kept) const {
    return shared_address(kept) + line_ * kSwizzleBytes;
  }

  const TileInfo& tile_;
  const int line_;
  const Factors factors_;
  const bool whole_;
};

}  // namespace sm90::backward
