// The result of a tile, or a part of its sums, from the accumulators of mma.sync to global memory.
#pragma once
#include "gemm/epilogue.cuh"
#include "gemm/sm80/shared.cuh"

namespace gemm {

// A thread has pairs of neighbours in two rows of each block.
template <class Config, class Params>
__device__ __forceinline__ void store_partials(const Params& params, const WorkTile& tile,
                                               const typename WarpTile<Config>::Sums& sums) {
  using Warp = WarpTile<Config>;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < Warp::kRowBlocks; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const i64 row = tile.row + Warp::row() + i * 16 + half * 8 + lane / 4;
      if (row >= params.rows) continue;
      float* const partial = params.partials + (tile.split * params.rows + row) * Config::kColumns;
#pragma unroll
      for (int j = 0; j < Warp::kColumnBlocks; ++j) {
        const int column = tile.column + Warp::column() + j * 8 + lane % 4 * 2;
        if (column < Config::kColumns)
          *reinterpret_cast<float2*>(partial + column) = make_float2(sums[i][j][half * 2], sums[i][j][half * 2 + 1]);
      }
    }
  }
}

// Four lanes exchange their pairs, so that each stores eight neighbours. For what lies outside of the result, which is
// not stored, its last row and columns are read.
template <class Config, class Params>
__device__ __forceinline__ void store_tile(const Params& params, const WorkTile& tile,
                                           const typename WarpTile<Config>::Sums& sums) {
  using Warp = WarpTile<Config>;
  constexpr int kTogether = 4;  // blocks of columns
  const int lane = threadIdx.x % 32, first_column = tile.column + Warp::column();
  const i64 end = kRowsOfSequences<Config> ? tile.rows_end : params.rows;
  u16* out = params.out;
  if constexpr (kSumsOfSequences<Config>) out += tile.sequence * params.out_sequence_stride;
#pragma unroll
  for (int first = 0; first < Warp::kColumnBlocks; first += kTogether) {
    int columns[kTogether];
    EpilogueVectors<Epilogue> vectors[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) {
      columns[j] = min(first_column + (first + j) * 8 + lane % 4 * 2, Config::kColumns - 2);
      vectors[j].load(params, columns[j], tile.sequence);
    }
    const int stored = first_column + (first + lane % 4) * 8;
#pragma unroll
    for (int i = 0; i < Warp::kRowBlocks; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const i64 row = tile.row + Warp::row() + i * 16 + half * 8 + lane / 4;
        const i64 inside = min(row, params.rows - 1);
        u32 words[kTogether];
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
          EpilogueMatrices<Epilogue> matrices;
          matrices.load(params, inside, columns[j]);
          const float* const pair = sums[i][first + j] + half * 2;
          Epilogue::Data::put(words, j * 2,
                              Epilogue::apply(params, pair[0], columns[j], vectors[j][0].of, matrices[0].of),
                              Epilogue::apply(params, pair[1], columns[j] + 1, vectors[j][1].of, matrices[1].of));
        }
        transpose_quad(words);
        if (row < end && stored < Config::kColumns) st_stream<16>(out + row * params.out_stride + stored, words);
      }
    }
  }
}

}  // namespace gemm
