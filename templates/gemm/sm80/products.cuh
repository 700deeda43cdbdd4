// The products of a tile: stages of both factors follow one another through shared memory.
#pragma once
#include "gemm/sm80/load.cuh"

namespace gemm {

// The box of 64 lines along the result that has a row or column of it.
__device__ __forceinline__ u32 box_of(u32 boxes, int at) { return boxes + at / kDepth * kDepth * kLineBytes; }

// 16 rows of the first factor from `row` on, 16 of the sum from `depth` on.
template <class Config>
__device__ __forceinline__ void load_rows(u32 (&words)[4], u32 a, int row, int depth) {
  const int lane = threadIdx.x % 32;
  if constexpr (Config::kATransposed) {
    const int at = row + lane / 8 % 2 * 8;
    ldmatrix_x4_trans(words, piece_address(box_of(a, at), depth + lane % 8 + lane / 16 * 8, at % kDepth / 8));
  } else {
    ldmatrix_x4(words, piece_address(a, row + lane % 16, depth / 8 + lane / 16));
  }
}

// 16 columns of the second factor: two words for the first eight, two for the others.
template <class Config>
__device__ __forceinline__ void load_columns(u32 (&words)[4], u32 b, int column, int depth) {
  const int lane = threadIdx.x % 32;
  if constexpr (Config::kBTransposed) {
    ldmatrix_x4(words, piece_address(b, column + lane % 8 + lane / 16 * 8, depth / 8 + lane / 8 % 2));
  } else {
    const int at = column + lane / 16 * 8;
    ldmatrix_x4_trans(words, piece_address(box_of(b, at), depth + lane % 8 + lane / 8 % 2 * 8, at % kDepth / 8));
  }
}

template <class Config>
__device__ __forceinline__ void multiply_stage(u32 a, u32 b, typename WarpTile<Config>::Sums& sums) {
  using Warp = WarpTile<Config>;
  constexpr int kStep = 16;  // of the sum, that mma.sync takes
#pragma unroll
  for (int depth = 0; depth < kDepth; depth += kStep) {
    u32 rows[Warp::kRowBlocks][4];
#pragma unroll
    for (int i = 0; i < Warp::kRowBlocks; ++i) load_rows<Config>(rows[i], a, Warp::row() + i * 16, depth);
#pragma unroll
    for (int j = 0; j < Warp::kColumnBlocks; j += 2) {
      u32 columns[4];
      load_columns<Config>(columns, b, Warp::column() + j * 8, depth);
#pragma unroll
      for (int i = 0; i < Warp::kRowBlocks; ++i) {
        Product::add(sums[i][j], rows[i], columns[0], columns[1]);
        Product::add(sums[i][j + 1], rows[i], columns[2], columns[3]);
      }
    }
  }
}

// All threads of the CTA call.
template <class Config, class Params>
__device__ __forceinline__ void multiply_tile(Shared<Config>& shared, const Params& params, const WorkTile& tile,
                                              typename WarpTile<Config>::Sums& sums) {
  constexpr int kAhead = Config::kStages - 1;
#pragma unroll
  for (auto& rows : sums) {
#pragma unroll
    for (auto& block : rows) {
#pragma unroll
      for (float& sum : block) sum = 0;
    }
  }
  __syncthreads();  // all have read the stages of the tile before
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    if (tile.first + i < tile.end) load_stage<Config>(shared, params, tile, i, tile.first + i);
    cp_async_commit_group();
  }
  int stage = 0;
#pragma unroll 1
  for (i64 depth = tile.first; depth < tile.end; ++depth) {
    cp_async_wait_group<kAhead - 1>();
    __syncthreads();  // the stage is there for all, and all have read the one before
    if (depth + kAhead < tile.end) {
      const int free = stage == 0 ? kAhead : stage - 1;
      load_stage<Config>(shared, params, tile, free, depth + kAhead);
    }
    cp_async_commit_group();
    multiply_stage<Config>(shared_address(shared.a[stage]), shared_address(shared.b[stage]), sums);
    stage = stage + 1 == Config::kStages ? 0 : stage + 1;
  }
  cp_async_wait_group<0>();
}

}  // namespace gemm
