// The products of a stage of fp32, by mma.sync of tf32. Fragments are rounded as they are read.
//
// ldmatrix reads fragments whose lines are along the sum. It does not transpose 32-bit elements: of lines along the
// result, a thread reads 16 bytes, which have its element of four fragments (SumLayout).
#pragma once
#include "common/ptx/ldst_shared.cuh"
#include "gemm/sm80/shared.cuh"

namespace gemm {

// Elements at `depth` + lane % 4 of all four fragments of 32 rows or columns from `at` on.
template <class Config>
__device__ __forceinline__ void load_four(u32& first, u32& second, u32& third, u32& fourth, u32 factor, int at,
                                          int depth) {
  const int lane = threadIdx.x % 32;
  const float4 four = ld_shared_float4(piece_address<Config, Major::kResult>(
      box_of<Config>(factor, at), depth + lane % 4, interleaved(lane / 4) / kPieceElements<Config>));
  first = cvt_rna_tf32(four.x);
  second = cvt_rna_tf32(four.y);
  third = cvt_rna_tf32(four.z);
  fourth = cvt_rna_tf32(four.w);
}

__device__ __forceinline__ void load_rounded(u32 (&words)[4], u32 address) {
  ldmatrix_x4(words, address);
#pragma unroll
  for (u32& word : words) word = cvt_rna_tf32(__uint_as_float(word));
}

// 32 rows of the first factor from `row` on, eight of the sum from `depth` on.
template <class Config>
__device__ __forceinline__ void load_rows(u32 (&low)[4], u32 (&high)[4], u32 a, int row, int depth) {
  const int lane = threadIdx.x % 32;
  if constexpr (Config::kATransposed) {
    load_four<Config>(low[0], low[1], high[0], high[1], a, row, depth);
    load_four<Config>(low[2], low[3], high[2], high[3], a, row, depth + 4);
  } else {
    const int line = row + interleaved(lane % 8) + lane / 8 % 2, piece = depth / kPieceElements<Config> + lane / 16;
    load_rounded(low, piece_address<Config, Major::kSum>(a, line, piece));
    load_rounded(high, piece_address<Config, Major::kSum>(a, line + 2, piece));
  }
}

// 32 columns of the second factor: two words for each fragment.
template <class Config>
__device__ __forceinline__ void load_columns(u32 (&words)[8], u32 b, int column, int depth) {
  const int lane = threadIdx.x % 32;
  if constexpr (Config::kBTransposed) {
    const int line = column + interleaved(lane % 8) + lane / 16, piece = depth / kPieceElements<Config> + lane / 8 % 2;
#pragma unroll
    for (int fragment = 0; fragment < 4; fragment += 2) {
      u32 two[4];
      load_rounded(two, piece_address<Config, Major::kSum>(b, line + fragment, piece));
#pragma unroll
      for (int i = 0; i < 4; ++i) words[fragment * 2 + i] = two[i];
    }
  } else {
    load_four<Config>(words[0], words[2], words[4], words[6], b, column, depth);
    load_four<Config>(words[1], words[3], words[5], words[7], b, column, depth + 4);
  }
}

template <class Config>
__device__ __forceinline__ void multiply_stage(u32 a, u32 b, typename WarpTile<Config>::Sums& sums) {
  using Warp = WarpTile<Config>;
  constexpr int kStep = 8;  // of the sum, that mma.sync takes
  static_assert(Warp::kRows % 32 == 0, "fragments are interleaved by 32 rows");
#pragma unroll
  for (int depth = 0; depth < Config::kDepth; depth += kStep) {
    u32 rows[Warp::kRowBlocks][4];
#pragma unroll
    for (int i = 0; i < Warp::kRowBlocks; i += 2)
      load_rows<Config>(rows[i], rows[i + 1], a, Warp::row() + i * 16, depth);
#pragma unroll
    for (int j = 0; j < Warp::kColumnBlocks; j += 4) {
      u32 columns[8];
      load_columns<Config>(columns, b, Warp::column() + j * 8, depth);
#pragma unroll
      for (int i = 0; i < Warp::kRowBlocks; ++i) {
#pragma unroll
        for (int fragment = 0; fragment < 4; ++fragment)
          MmaTf32::add(sums[i][j + fragment], rows[i], columns[fragment * 2], columns[fragment * 2 + 1]);
      }
    }
  }
}

}  // namespace gemm
