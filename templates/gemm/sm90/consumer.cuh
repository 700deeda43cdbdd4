// A consumer warpgroup: multiplies stages, then stores the rows of the tile that are its own.
#pragma once
#include "gemm/epilogue.cuh"
#include "gemm/sm90/shared.cuh"
#include "gemm/sm90/tile_scheduler.cuh"

namespace gemm {

template <class Config, class Params>
class Consumer {
  static constexpr int kBlocks = kRowBlocks<Config>;
  static constexpr int kGroups = Config::kBlockN / 8;  // of columns, in the layout of wgmma's accumulators

 public:
  __device__ __forceinline__ Consumer(Shared<Config>& shared, const Params& params, int warpgroup)
      : shared_(shared), params_(params), warpgroup_(warpgroup) {}

  __device__ __forceinline__ void run(const TileScheduler<Config>& scheduler) {
    i64 number = blockIdx.x;
    if constexpr (Config::kPingPong) {
      for (int i = 0; i < warpgroup_ && number < scheduler.count(); ++i, number += gridDim.x)
        skip(scheduler.tile(number));
    }
    while (number < scheduler.count()) {
      const WorkTile tile = scheduler.tile(number);
      if constexpr (Config::kPingPong) named_barrier_sync(kTurnBarrier + warpgroup_, 2 * kWarpgroup);
      multiply(tile);
      if constexpr (Config::kPingPong) named_barrier_arrive(kTurnBarrier + (warpgroup_ ^ 1), 2 * kWarpgroup);
      store(tile);
      number += gridDim.x;
      if constexpr (Config::kPingPong) {
        if (number < scheduler.count()) skip(scheduler.tile(number));
        number += gridDim.x;
      }
    }
  }

 private:
  // The stages of a tile that is the other consumer's.
  __device__ __forceinline__ void skip(const WorkTile& tile) {
    for (i64 i = tile.first; i < tile.end; ++i) pipeline_.advance();
  }

  __device__ __forceinline__ void multiply(const WorkTile& tile) {
    // 64 rows or columns of the result are as many bytes in both layouts.
    constexpr u32 kBlockBytes = kWarpgroupRows * kSwizzleBytes;
    const int first_block = Config::kPingPong ? 0 : warpgroup_ * kBlocks;
    sm90::PipelineState<Config::kStages> before = pipeline_;
    if (tile.first == tile.end) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
        for (float& sum : sums_[block]) sum = 0;
      }
    }
#pragma unroll 1
    for (i64 depth = tile.first; depth < tile.end; ++depth) {
      const int stage = pipeline_.stage();
      mbarrier_wait(shared_address(&shared_.full[stage]), pipeline_.phase());
      const u32 b = wgmma_operand(shared_address(shared_.b[stage]), kBlockBytes);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) wgmma_keep_in_place(sums_[block]);
      wgmma_fence();
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const u32 a = wgmma_operand(shared_address(shared_.a[stage]) + (first_block + block) * kBlockBytes);
        Product::issue(sums_[block], a, b, depth != tile.first);
      }
      wgmma_commit_group();
      if (depth != tile.first) {
        wgmma_wait_group<1>();
        release_stage<Config>(shared_.empty[before.stage()]);
        before = pipeline_;
      }
      pipeline_.advance();
    }
    wgmma_wait_group<0>();
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) wgmma_keep_in_place(sums_[block]);
    if (tile.first != tile.end) release_stage<Config>(shared_.empty[before.stage()]);
  }

  __device__ __forceinline__ void store(const WorkTile& tile) const {
    const int first_block = Config::kPingPong ? 0 : warpgroup_ * kBlocks;
    const int thread = threadIdx.x % kWarpgroup;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const i64 row = tile.row + (first_block + block) * kWarpgroupRows + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if constexpr (Config::kSplitK > 1) {
          store_partial(tile, row + half * 8, sums_[block], half);
        } else {
          store_row(tile.column, row + half * 8, sums_[block], half);
        }
      }
    }
  }

  // Four groups of columns at a time, of which each thread of a quad stores one.
  __device__ __forceinline__ void store_row(int first_column, i64 row, const float (&sums)[4 * kGroups],
                                            int half) const {
    const bool inside = row < params_.rows;
    const int lane = threadIdx.x % 4;
    u16* const out = params_.out + row * params_.out_stride;
#pragma unroll
    for (int group = 0; group < kGroups; group += 4) {
      u32 words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = first_column + (group + i) * 8 + lane * 2;
        const float *pair = sums + (group + i) * 4 + half * 2;
        words[i] = 0;
        if (inside && column < Config::kColumns) {
          const EpilogueOperands<Epilogue, Params> operands(params_, row, column);
          Epilogue::Data::put(words, i * 2, operands.apply(params_, pair[0], 0), operands.apply(params_, pair[1], 1));
        }
      }
      transpose_quad(words);
      const int column = first_column + (group + lane) * 8;
      if (inside && column < Config::kColumns) st_stream<16>(out + column, words);
    }
  }

  __device__ __forceinline__ void store_partial(const WorkTile& tile, i64 row, const float (&sums)[4 * kGroups],
                                                int half) const {
    if (row >= params_.rows) return;
    float* const partial = params_.partials + (tile.split * params_.rows + row) * Config::kColumns;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int column = tile.column + group * 8 + threadIdx.x % 4 * 2;
      if (column < Config::kColumns) {
        *reinterpret_cast<float2*>(partial + column) = make_float2(sums[group * 4 + half * 2], sums[group * 4 + half * 2 + 1]);
      }
    }
  }

  Shared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
  sm90::PipelineState<Config::kStages> pipeline_;
  float sums_[kBlocks][4 * kGroups];
};

}  // namespace gemm
