// The products of a stage of bf16 or fp16, by mma.sync.
#pragma once
#include "gemm/sm80/shared.cuh"

namespace gemm {

// 16 rows of the first factor from `row` on, 16 of the sum from `depth` on.
template <class Config>
__device__ __forceinline__ void load_rows(u32 (&words)[4], u32 a, int row, int depth) {
  const int lane = threadIdx.x % 32;
  if constexpr (Config::kATransposed) {
    const int at = row + lane / 8 % 2 * 8;
    ldmatrix_x4_trans(words, piece_address<Config, Major::kResult>(
                                 box_of<Config>(a, at), depth + lane % 8 + lane / 16 * 8, at % Config::kDepth / 8));
  } else {
    ldmatrix_x4(words, piece_address<Config, Major::kSum>(a, row + lane % 16, depth / 8 + lane / 16));
  }
}

// 16 columns of the second factor: two words for the first eight, two for the others.
template <class Config>
__device__ __forceinline__ void load_columns(u32 (&words)[4], u32 b, int column, int depth) {
  const int lane = threadIdx.x % 32;
  if constexpr (Config::kBTransposed) {
    ldmatrix_x4(words,
                piece_address<Config, Major::kSum>(b, column + lane % 8 + lane / 16 * 8, depth / 8 + lane / 8 % 2));
  } else {
    const int at = column + lane / 16 * 8;
    ldmatrix_x4_trans(words, piece_address<Config, Major::kResult>(
                                 box_of<Config>(b, at), depth + lane % 8 + lane / 8 % 2 * 8, at % Config::kDepth / 8));
  }
}

template <class Config>
__device__ __forceinline__ void multiply_stage(u32 a, u32 b, typename WarpTile<Config>::Sums& sums) {
  using Warp = WarpTile<Config>;
  constexpr int kStep = 16;  // of the sum, that mma.sync takes
#pragma unroll
  for (int depth = 0; depth < Config::kDepth; depth += kStep) {
    u32 rows[Warp::kRowBlocks][4];
#pragma unroll
    for (int i = 0; i < Warp::kRowBlocks; ++i) load_rows<Config>(rows[i], a, Warp::row() + i * 16, depth);
#pragma unroll
    for (int j = 0; j < Warp::kColumnBlocks; j += 2) {
      u32 columns[4];
      load_columns<Config>(columns, b, Warp::column() + j * 8, depth);
#pragma unroll
      for (int i = 0; i < Warp::kRowBlocks; ++i) {
        Mma16bit::add(sums[i][j], rows[i], columns[0], columns[1]);
        Mma16bit::add(sums[i][j + 1], rows[i], columns[2], columns[3]);
      }
    }
  }
}

}  // namespace gemm
