// Warps that add up the columns of a factor, stage by stage, beside the products: of the producer's warpgroup, those
// behind its first one. A stage has boxes of 64 columns, which these warps share out.
#pragma once
#include "common/ptx/ldst_shared.cuh"
#include "gemm/column_sums.cuh"
#include "gemm/sm90/shared.cuh"

namespace gemm {

template <class Config, class Params>
class ColumnSummer {
  static constexpr int kBoxBytes = kDepth * kSwizzleBytes;
  static constexpr int kOwn = (kSummedBoxes<Config> + kSumWarps<Config> - 1) / kSumWarps<Config>;  // boxes of a warp
  static constexpr int kChunk = 8, kChunks = kDepth / kChunk;  // elements that a lane reads at once, and of a line
  static constexpr int kLines = 32 / kChunks;                  // that a warp reads at once
  static constexpr int kAhead = 4;                             // reads of a lane before the first of them is added

 public:
  // `warp`: which of these warps it is.
  __device__ __forceinline__ ColumnSummer(Shared<Config>& shared, const Params& params, int warp)
      : shared_(shared), params_(params), warp_(warp) {}

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
    const bool sums = has_column_sums<Config>(tile);
#pragma unroll
    for (auto& box : sums_) {
#pragma unroll
      for (float& sum : box) sum = 0;
    }
#pragma unroll 1
    for (i64 depth = tile.first; depth < tile.end; ++depth) {
      const int stage = pipeline_.stage();
      mbarrier_wait(shared_address(&shared_.full[stage]), pipeline_.phase());
      if (sums) {
        // Lines behind a sequence's last row are those of the next one.
        const i64 left = kSumsOfSequences<Config> ? tile.rows_end - tile.rows_begin - depth * kDepth : kDepth;
        const u32 factor = shared_address(kSumsOfA<Config> ? shared_.a[stage] : shared_.b[stage]);
        add_stage(factor, left < kDepth ? static_cast<int>(left) : kDepth);
      }
      release_stage<Config>(shared_.empty[stage]);
      pipeline_.advance();
    }
    if (sums) store(tile);
  }

  // A lane has the same eight columns of every fourth line.
  __device__ __forceinline__ void add_stage(u32 factor, int lines) {
    const int lane = threadIdx.x % 32, chunk = lane % kChunks, first = lane / kChunks;
    const u32 from = factor + warp_ * kBoxBytes + first * kSwizzleBytes;
#pragma unroll
    for (int box = 0; box < kOwn; ++box) {
      if (kSummedBoxes<Config> % kSumWarps<Config> != 0 && warp_ + box * kSumWarps<Config> >= kSummedBoxes<Config>)
        return;
      const u32 lines_of_box = from + box * kSumWarps<Config> * kBoxBytes;
#pragma unroll 1
      for (int line = 0; line < kDepth; line += kAhead * kLines) {
        float4 chunks[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
          const int own = line + i * kLines, place = chunk ^ (own + first) % kChunks;  // in the swizzle
          if (kSumsOfSequences<Config> && own + first >= lines) {
            chunks[i] = make_float4(0, 0, 0, 0);
          } else {
            chunks[i] = ld_shared_float4(lines_of_box + own * kSwizzleBytes + place * 16);
          }
        }
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
          const u32 words[4] = {__float_as_uint(chunks[i].x), __float_as_uint(chunks[i].y),
                                __float_as_uint(chunks[i].z), __float_as_uint(chunks[i].w)};
#pragma unroll
          for (int e = 0; e < kChunk; ++e) sums_[box][e] += Epilogue::Data::get(words, e);
        }
      }
    }
  }

  __device__ __forceinline__ void store(const WorkTile& tile) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int box = 0; box < kOwn; ++box) {
#pragma unroll
      for (float& sum : sums_[box]) {
#pragma unroll
        for (int other = kChunks; other < 32; other *= 2) sum += __shfl_xor_sync(~0u, sum, other);
      }
      const int number = warp_ + box * kSumWarps<Config>;
      if (lane >= kChunks || number >= kSummedBoxes<Config>) continue;
      const int column = first_summed_column<Config>(tile) + number * kDepth + lane * kChunk;
#pragma unroll
      for (int i = 0; i < kChunk; i += 2)
        store_column_sums<Config>(params_, tile, column + i, sums_[box][i], sums_[box][i + 1]);
    }
  }

  Shared<Config>& shared_;
  const Params& params_;
  const int warp_;
  sm90::PipelineState<Config::kStages> pipeline_, queue_;
  float sums_[kOwn][kChunk];
};

}  // namespace gemm
