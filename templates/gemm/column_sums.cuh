// A second result of sums over rows: sums of the columns of one factor. All tiles of a row of the result, or of a
// column of it, have the same columns of that factor, and one of them adds up each: on Hopper they share out boxes of
// 64, by mma.sync the first one has all.
#pragma once
#include "common/pack.cuh"
#include "gemm/tile_scheduler.cuh"

namespace gemm {

// Config::kColumnSums: none, those of a, those of b.
template <class Config>
constexpr bool kSumsOfA = Config::kColumnSums == 1;

// How many tiles have the same columns, and which of them a tile is.
template <class Config>
constexpr int kColumnShares = kSumsOfA<Config> ? (Config::kColumns + Config::kBlockN - 1) / Config::kBlockN
                                               : (Config::kResultRows + Config::kBlockM - 1) / Config::kBlockM;

template <class Config>
__device__ __forceinline__ int column_share(const WorkTile& tile) {
  return kSumsOfA<Config> ? tile.column / Config::kBlockN : static_cast<int>(tile.row / Config::kBlockM);
}

// The first of the factor's columns that a tile has.
template <class Config>
__device__ __forceinline__ int first_summed_column(const WorkTile& tile) {
  return kSumsOfA<Config> ? static_cast<int>(tile.row) : tile.column;
}

template <class Config>
constexpr int kSummedColumns = kSumsOfA<Config> ? Config::kResultRows : Config::kColumns;

// Elements between the sums of one part and those of the next: pairs of them are stored together.
template <class Config>
constexpr int kColumnPitch = (kSummedColumns<Config> + 1) / 2 * 2;

// Whether pairs of sums, which are rounded, are stored together: elsewhere the second may be behind the last column.
template <class Config>
constexpr bool kStoresPairs =
    (kSumsOfA<Config> ? Config::kAAlignment : Config::kBAlignment) >= 2 * Epilogue::Data::kBytes;

// The sums of two neighbours.
template <class Config, class Params>
__device__ __forceinline__ void store_scaled_sums(const Params& params, int sequence, int column, float x, float y) {
  float scale = 1;
  if constexpr (Config::kColumnScale) scale = params.column_scale;
  auto to = params.column_sums + column;
  if constexpr (Config::kSequences) to += sequence * params.column_sums_stride;
  if constexpr (kStoresPairs<Config>) {
    Pack<Epilogue::Data, 2> pair;
    pair.set({scale * x, scale * y});
    pair.store(to);
  } else {
    Pack<Epilogue::Data, 1> one;
    one.set({scale * x});
    one.store(to);
    one.set({scale * y});
    if (column + 1 < kSummedColumns<Config>) one.store(to + 1);
  }
}

// The same of a tile, which may have a part of their terms. Columns behind the last one have none.
template <class Config, class Params>
__device__ __forceinline__ void store_column_sums(const Params& params, const WorkTile& tile, int column, float x,
                                                  float y) {
  if (column >= kSummedColumns<Config>) return;
  if constexpr (Config::kSplitK > 1) {
    float* const part = params.column_partials + tile.split * kColumnPitch<Config>;
    *reinterpret_cast<float2*>(part + column) = make_float2(x, y);
  } else {
    store_scaled_sums<Config>(params, tile.sequence, column, x, y);
  }
}

// Adds up the parts, in their order. All threads of the grid call.
template <class Config, class Params>
__device__ __forceinline__ void add_column_partials(const Params& params) {
  constexpr int kColumns = kSummedColumns<Config>;
  for (int column = (blockIdx.x * blockDim.x + threadIdx.x) * 2; column < kColumns;
       column += gridDim.x * blockDim.x * 2) {
    float x = 0, y = 0;
#pragma unroll 4
    for (int split = 0; split < Config::kSplitK; ++split) {
      const float2 part =
          *reinterpret_cast<const float2*>(params.column_partials + split * kColumnPitch<Config> + column);
      x += part.x;
      y += part.y;
    }
    store_scaled_sums<Config>(params, /*sequence=*/0, column, x, y);
  }
}

}  // namespace gemm
