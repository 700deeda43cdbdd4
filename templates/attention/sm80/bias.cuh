// hstu_attention on Ampere and Ada: the bias as what the scores of a chunk begin with.
#pragma once
#include "attention/operands/pair.cuh"
#include "attention/sm80/products.cuh"

namespace sm80 {

// Begins the scores of a warp's rows with the bias, of which this thread's first is `row`, and the chunk of columns
// from `column0` on.
template <class Spec, class S, class Bias>
__device__ __forceinline__ void begin_rows_with(const Bias& bias, int row, int column0, typename S::Scores& scores) {
#pragma unroll
  for (int i = 0; i < S::kRowTiles; ++i) {
    if constexpr (Spec::kDtypeFp32) {
#pragma unroll
      for (int j = 0; j < S::kScoreTiles; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          scores[i][j][e] = bias.at(row + 16 * i + 8 * (e / 2), column0 + 8 * j + Products<S>::score_column(e % 2));
        }
      }
    } else {
      u32 words[2 * S::kScoreTiles];
      bias.template load_fragment<8 * S::kScoreTiles>(row + 16 * i, column0, words);
#pragma unroll
      for (int j = 0; j < S::kScoreTiles; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          scores[i][j][2 * half] = unpack_low<Spec::kDtypeBf16>(words[2 * j + half]);
          scores[i][j][2 * half + 1] = unpack_high<Spec::kDtypeBf16>(words[2 * j + half]);
        }
      }
    }
  }
}

// The same of a warp's columns and a chunk of rows.
template <class S, class Bias>
__device__ __forceinline__ void begin_columns_with(const Bias& bias, int column, int row0, typename S::Scores& scores) {
  for_each_score<S>([&](int i, int j, int e) {
    scores[i][j][e] = bias.at(row0 + 8 * j + Products<S>::score_column(e % 2), column + 16 * i + 8 * (e / 2));
  });
}

}  // namespace sm80
