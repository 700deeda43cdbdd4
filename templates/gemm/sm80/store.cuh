// The result of a tile, or a part of its sums, from the accumulators to global memory.
#pragma once
#include "gemm/epilogue.cuh"
#include "gemm/sm80/shared.cuh"

namespace gemm {

constexpr int kPairs = 4;  // that a thread has of a row of four blocks of columns

template <class Config, class Params>
__device__ __forceinline__ void store_partials(const Params& params, const WorkTile& tile,
                                               const typename WarpTile<Config>::Sums& sums) {
  using Warp = WarpTile<Config>;
#pragma unroll
  for (int i = 0; i < Warp::kRowBlocks; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i64 row = Layout<Config>::row(tile.row + Warp::row(), i, half);
      if (row >= params.rows) continue;
      float* const partial = params.partials + (tile.split * params.rows + row) * kPartialPitch<Config>;
#pragma unroll
      for (int at = 0; at < Warp::kColumnBlocks; ++at) {
        const int first = at / kPairs * kPairs, pair = at % kPairs;
        const int column = Layout<Config>::column(tile.column + Warp::column(), first, pair);
        if (column < kPartialPitch<Config>) {
          *reinterpret_cast<float2*>(partial + column) = make_float2(
              Layout<Config>::sum(sums[i], first, half, pair, 0), Layout<Config>::sum(sums[i], first, half, pair, 1));
        }
      }
    }
  }
}

// A thread's pairs of a row, which begins at `out`. 16-bit ones were exchanged among four lanes, so that each stores
// eight neighbours.
template <class Config, class Element>
__device__ __forceinline__ void store_pairs(Element* out, int first_column, int first,
                                            const u32 (&words)[kPairs * kElementBytes<Config> / 2]) {
  if constexpr (kElementBytes<Config> == 2) {
    store_neighbours<Config>(out, first_column + (first + threadIdx.x % 4) * 8, words);
  } else {
#pragma unroll
    for (int pair = 0; pair < kPairs; pair += 2) {
      const u32 four[4] = {words[pair * 2], words[pair * 2 + 1], words[pair * 2 + 2], words[pair * 2 + 3]};
      store_neighbours<Config>(out, Layout<Config>::column(first_column, first, pair), four);
    }
  }
}

// For what lies outside of the result, which is not stored, its last row and columns are read.
template <class Config, class Params>
__device__ __forceinline__ void store_tile(const Params& params, const WorkTile& tile,
                                           const typename WarpTile<Config>::Sums& sums) {
  using Warp = WarpTile<Config>;
  const int first_column = tile.column + Warp::column();
  const i64 end = kRowsOfSequences<Config> ? tile.rows_end : params.rows;
  auto out = params.out;
  if constexpr (kSumsOfSequences<Config>) out += tile.sequence * params.out_sequence_stride;
#pragma unroll
  for (int first = 0; first < Warp::kColumnBlocks; first += kPairs) {
    int columns[kPairs];
    EpilogueVectors<Config, Epilogue> vectors[kPairs];
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      columns[pair] = column_inside<Config>(Layout<Config>::column(first_column, first, pair));
      vectors[pair].load(params, columns[pair], tile.sequence);
    }
#pragma unroll
    for (int i = 0; i < Warp::kRowBlocks; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const i64 row = Layout<Config>::row(tile.row + Warp::row(), i, half);
        const i64 inside = min(row, params.rows - 1);
        u32 words[kPairs * kElementBytes<Config> / 2];
#pragma unroll
        for (int pair = 0; pair < kPairs; ++pair) {
          EpilogueMatrices<Config, Epilogue> matrices;
          matrices.load(params, inside, columns[pair]);
          const auto element = [&](int e) {
            return Epilogue::apply(params, Layout<Config>::sum(sums[i], first, half, pair, e), columns[pair] + e,
                                   vectors[pair][e].of, matrices[e].of);
          };
          Epilogue::Data::put(words, pair * 2, element(0), element(1));
        }
        if constexpr (kElementBytes<Config> == 2) transpose_quad(words);
        if (row < end) store_pairs<Config>(out + row * params.out_stride, first_column, first, words);
      }
    }
  }
}

}  // namespace gemm
