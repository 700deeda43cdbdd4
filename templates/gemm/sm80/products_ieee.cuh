// The products of a stage of fp32, each rounded to nearest: fused multiply-adds, without tensor cores. A thread has
// four rows of each 32, and eight columns, as of fragments of tf32 (SumLayout).
#pragma once
#include "common/ptx/ldst_shared.cuh"
#include "gemm/sm80/shared.cuh"

namespace gemm {

// Four neighbouring rows or columns of the result from `at` on, each four of the sum from `depth` on.
template <class Config, Major kMajor>
__device__ __forceinline__ void load_square(float (&elements)[4][4], u32 factor, int at, int depth) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kMajor == Major::kSum) {
      const float4 four = ld_shared_float4(piece_address<Config, kMajor>(factor, at + i, depth / 4));
      elements[i][0] = four.x;
      elements[i][1] = four.y;
      elements[i][2] = four.z;
      elements[i][3] = four.w;
    } else {
      const float4 four = ld_shared_float4(
          piece_address<Config, kMajor>(box_of<Config>(factor, at), depth + i, at % Config::kDepth / 4));
      elements[0][i] = four.x;
      elements[1][i] = four.y;
      elements[2][i] = four.z;
      elements[3][i] = four.w;
    }
  }
}

template <class Config>
__device__ __forceinline__ void multiply_stage(u32 a, u32 b, typename WarpTile<Config>::Sums& sums) {
  using Warp = WarpTile<Config>;
  constexpr Major kA = Config::kATransposed ? Major::kResult : Major::kSum;
  constexpr Major kB = Config::kBTransposed ? Major::kSum : Major::kResult;
  constexpr int kGroups = Warp::kRows / 32, kStep = 4;
  static_assert(Warp::kRows % 32 == 0, "a thread has four rows of each 32");
#pragma unroll 2
  for (int depth = 0; depth < Config::kDepth; depth += kStep) {
    float rows[kGroups][4][kStep];
#pragma unroll
    for (int group = 0; group < kGroups; ++group)
      load_square<Config, kA>(rows[group], a, Warp::row() + group * 32 + interleaved(Layout<Config>::lane_row()),
                              depth);
#pragma unroll
    for (int j = 0; j < Warp::kColumnBlocks; j += 4) {
#pragma unroll
      for (int part = 0; part < 2; ++part) {  // of eight columns, four
        float columns[4][kStep];
        load_square<Config, kB>(columns, b, Layout<Config>::column(Warp::column(), j, part * 2), depth);
#pragma unroll
        for (int step = 0; step < kStep; ++step) {
#pragma unroll
          for (int i = 0; i < Warp::kRowBlocks; ++i) {
#pragma unroll
            for (int column = 0; column < 4; ++column) {
#pragma unroll
              for (int half = 0; half < 2; ++half) {
                Simt::add(sums[i][j + column][half * 2 + part], rows[i / 2][i % 2 * 2 + half][step],
                          columns[column][step]);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace gemm
