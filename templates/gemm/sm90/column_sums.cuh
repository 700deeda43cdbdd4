// Warps that add up the columns of a factor, stage by stage, beside the products: two of the producer's warpgroup, each
// the halves of boxes of 64 columns. Products leave hardly any bandwidth of shared memory, so what is read besides is
// paid for in full: tiles that have the same columns share out their boxes.
#pragma once
#include "common/ptx/ldst_shared.cuh"
#include "gemm/column_sums.cuh"
#include "gemm/sm90/shared.cuh"

namespace gemm {

template <class Config, class Params>
class ColumnSummer {
  static constexpr int kBoxes = kSummedBoxes<Config>, kBoxBytes = kDepth * kSwizzleBytes;
  static constexpr int kOwn = (kBoxes + kColumnShares<Config> - 1) / kColumnShares<Config>;  // that a tile adds up
  static constexpr int kChunk = 8;  // elements that a lane reads at once
  static constexpr int kChunks = kDepth / kChunk / kSumWarps<Config>;  // of a line, that a warp has
  static constexpr int kLines = 32 / kChunks;                          // that a warp reads at once
  static constexpr int kAhead = 4;  // reads of a lane before the first of them is added

 public:
  // `warp`: which of these warps it is.
  __device__ __forceinline__ ColumnSummer(Shared<Config>& shared, const Params& params, int warp)
      : shared_(shared), params_(params), chunk_(warp * kChunks + threadIdx.x % kChunks) {}

  __device__ __forceinline__ void run(const TileScheduler<Config>& scheduler) {
    for (i64 number = scheduler.first(); number < scheduler.count(); number += scheduler.step())
      add(scheduler.tile(number));
  }

  __device__ __forceinline__ void run_sequences() {
    while (true) {
      const WorkTile tile = take_tile(shared_, queue_);
      if (tile.sequence < 0) break;
      add(tile);
    }
  }

 private:
  // All stages of a tile, read or not, are given back.
  __device__ __forceinline__ void add(const WorkTile& tile) {
    const int share = column_share<Config>(tile);
    const int first = share < kColumnShares<Config> ? share : kBoxes;  // tiles of a cluster may be below the last row
#pragma unroll
    for (auto& box : sums_) {
#pragma unroll
      for (float& sum : box) sum = 0;
    }
#pragma unroll 1
    for (i64 depth = tile.first; depth < tile.end; ++depth) {
      const int stage = pipeline_.stage();
      mbarrier_wait(shared_address(&shared_.full[stage]), pipeline_.phase());
      // Lines behind a sequence's last row are those of the next one.
      const i64 left = kSumsOfSequences<Config> ? tile.rows_end - tile.rows_begin - depth * kDepth : kDepth;
      const u32 factor = shared_address(kSumsOfA<Config> ? shared_.a[stage] : shared_.b[stage]);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const int box = first + i * kColumnShares<Config>;
        if (box < kBoxes) add_box(factor + box * kBoxBytes, left < kDepth ? static_cast<int>(left) : kDepth, sums_[i]);
      }
      release_stage<Config>(shared_.empty[stage]);
      pipeline_.advance();
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int box = first + i * kColumnShares<Config>;
      if (box < kBoxes) store(tile, box, sums_[i]);
    }
  }

  // A lane has the same eight columns of every few lines.
  __device__ __forceinline__ void add_box(u32 box, int lines, float (&sums)[kChunk]) {
    const int first = threadIdx.x % 32 / kChunks;
#pragma unroll
    for (int line = first; line - first < kDepth; line += kAhead * kLines) {
      float4 chunks[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int own = line + i * kLines;
        if (kSumsOfSequences<Config> && own >= lines) {
          chunks[i] = make_float4(0, 0, 0, 0);
        } else {
          chunks[i] = ld_shared_float4(box + own * kSwizzleBytes + (chunk_ ^ own % 8) * 16);  // in the swizzle
        }
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const u32 words[4] = {__float_as_uint(chunks[i].x), __float_as_uint(chunks[i].y), __float_as_uint(chunks[i].z),
                              __float_as_uint(chunks[i].w)};
#pragma unroll
        for (int e = 0; e < kChunk; ++e) sums[e] += Epilogue::Data::get(words, e);
      }
    }
  }

  __device__ __forceinline__ void store(const WorkTile& tile, int box, float (&sums)[kChunk]) {
#pragma unroll
    for (float& sum : sums) {
#pragma unroll
      for (int other = kChunks; other < 32; other *= 2) sum += __shfl_xor_sync(~0u, sum, other);
    }
    if (threadIdx.x % 32 >= kChunks) return;
    const int column = first_summed_column<Config>(tile) + box * kDepth + chunk_ * kChunk;
#pragma unroll
    for (int i = 0; i < kChunk; i += 2) store_column_sums<Config>(params_, tile, column + i, sums[i], sums[i + 1]);
  }

  Shared<Config>& shared_;
  const Params& params_;
  const int chunk_;  // of a line, that the lane has
  sm90::PipelineState<Config::kStages> pipeline_, queue_;
  float sums_[kOwn][kChunk];
};

}  // namespace gemm
