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
  static constexpr int kPieces = Config::kBlockN / kPieceColumns, kPieceSums = kPieceColumns / 2;

 public:
  __device__ __forceinline__ Consumer(Shared<Config>& shared, const Params& params, int warpgroup)
      : shared_(shared), params_(params), warpgroup_(warpgroup) {}

  __device__ __forceinline__ void run(const TileScheduler<Config>& scheduler) {
    i64 number = scheduler.first();
    if constexpr (Config::kPingPong) {
      for (int i = 0; i < warpgroup_ && number < scheduler.count(); ++i, number += scheduler.step())
        skip(scheduler.tile(number));
    }
    while (number < scheduler.count()) {
      const WorkTile tile = scheduler.tile(number);
      if constexpr (Config::kPingPong) named_barrier_sync(kTurnBarrier + warpgroup_, 2 * kWarpgroup);
      multiply(tile);
      if constexpr (Config::kPingPong) named_barrier_arrive(kTurnBarrier + (warpgroup_ ^ 1), 2 * kWarpgroup);
      store(tile);
      number += scheduler.step();
      if constexpr (Config::kPingPong) {
        if (number < scheduler.count()) skip(scheduler.tile(number));
        number += scheduler.step();
      }
    }
    if constexpr (Config::kStoreBuffers > 0) {
      if (threadIdx.x % 32 == 0) bulk_wait_groups_read<0>();
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
    const i64 first_row = tile.row + (Config::kPingPong ? 0 : warpgroup_ * kBlocks) * kWarpgroupRows;
    if constexpr (Config::kSplitK > 1) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const i64 row = first_row + block * kWarpgroupRows + threadIdx.x % kWarpgroup / 32 * kPieceRows;
        store_partial(tile, row + threadIdx.x % 32 / 4, sums_[block], 0);
        store_partial(tile, row + threadIdx.x % 32 / 4 + 8, sums_[block], 1);
      }
    } else {
      store_pieces(first_row + threadIdx.x % kWarpgroup / 32 * kPieceRows, tile.column);
    }
  }

  // The warp's rows of the tile, 16 of 64 columns a piece, as many pieces at a time as leave buffers to those before.
  __device__ __forceinline__ void store_pieces(i64 row, int column) const {
    constexpr int kAll = kBlocks * kPieces, kBuffers = Config::kStoreBuffers;
    constexpr int kTogether = kBuffers == kAll || kBuffers == 1 ? kBuffers : kBuffers / 2;
    constexpr int kBefore = kBuffers / kTogether - 1;  // groups that may still be on their way
    const u32 buffers = shared_address(shared_.pieces[threadIdx.x / 32]);
#pragma unroll
    for (int first = 0; first < kAll; first += kTogether) {
      if (threadIdx.x % 32 == 0) bulk_wait_groups_read<kBefore>();
      __syncwarp();
#pragma unroll
      for (int i = first; i < first + kTogether; ++i) {
        stage_piece(buffers + i % kBuffers * kPieceBytes, row + i / kPieces * kWarpgroupRows,
                    column + i % kPieces * kPieceColumns, sums_[i / kPieces] + i % kPieces * kPieceSums);
      }
      fence_proxy_async();
      __syncwarp();
      if (threadIdx.x % 32 == 0) {
#pragma unroll
        for (int i = first; i < first + kTogether; ++i) {
          store_bulk_tensor_2d(buffers + i % kBuffers * kPieceBytes, params_.out_map,
                               column + i % kPieces * kPieceColumns,
                               static_cast<int>(row) + i / kPieces * kWarpgroupRows);
        }
        bulk_commit_group();
      }
    }
  }

  // A thread has pairs of neighbours in two rows. What lies outside of the result is computed from its last row and
  // columns, and not stored.
  __device__ __forceinline__ void stage_piece(u32 to, i64 row, int column, const float* sums) const {
    constexpr int kGroupsOfPiece = kPieceColumns / 8;
    const int lane = threadIdx.x % 32;
    const i64 last_row = params_.rows - 1;
    const i64 rows[2] = {min(row + lane / 4, last_row), min(row + lane / 4 + 8, last_row)};
    u32 words[2 * kGroupsOfPiece];
#pragma unroll
    for (int group = 0; group < kGroupsOfPiece; ++group) {
      const int own = min(column + group * 8 + lane % 4 * 2, Config::kColumns - 2);
      const EpilogueVectors<Epilogue> vectors(params_, own);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const EpilogueMatrices<Epilogue> matrices(params_, rows[half], own);
        const float* const pair = sums + group * 4 + half * 2;
        Epilogue::Data::put(words, (group * 2 + half) * 2, Epilogue::apply(params_, pair[0], vectors[0], matrices[0]),
                            Epilogue::apply(params_, pair[1], vectors[1], matrices[1]));
      }
    }
    stage_fragment<kPieceColumns>(to, 0, words);
  }

  __device__ __forceinline__ void store_partial(const WorkTile& tile, i64 row, const float (&sums)[4 * kGroups],
                                                int half) const {
    if (row >= params_.rows) return;
    float* const partial = params_.partials + (tile.split * params_.rows + row) * Config::kColumns;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int column = tile.column + group * 8 + threadIdx.x % 4 * 2;
      if (column < Config::kColumns) {
        *reinterpret_cast<float2*>(partial + column) =
            make_float2(sums[group * 4 + half * 2], sums[group * 4 + half * 2 + 1]);
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
