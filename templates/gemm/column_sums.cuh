// A second result of sums over rows: sums of the columns of one factor. The first row of tiles, or the first column of
// them, has all columns of that factor, a part of the rows for each split.
#pragma once
#include "common/pack.cuh"
#include "gemm/tile_scheduler.cuh"

namespace gemm {

// Config::kColumnSums: none, those of a, those of b.
template <class Config>
constexpr bool kSumsOfA = Config::kColumnSums == 1;

template <class Config>
__device__ __forceinline__ bool has_column_sums(const WorkTile& tile) {
  return kSumsOfA<Config> ? tile.column == 0 : tile.row == 0;
}

// The first of the factor's columns that a tile has.
template <class Config>
__device__ __forceinline__ int first_summed_column(const WorkTile& tile) {
  return kSumsOfA<Config> ? static_cast<int>(tile.row) : tile.column;
}

template <class Config, class Params>
__device__ __forceinline__ int summed_columns(const Params& params) {
  return kSumsOfA<Config> ? static_cast<int>(params.rows) : Config::kColumns;
}

// The sums of two neighbours.
template <class Config, class Params>
__device__ __forceinline__ void store_scaled_sums(const Params& params, int sequence, int column, float x, float y) {
  float scale = 1;
  if constexpr (Config::kColumnScale) scale = params.column_scale;
  auto to = params.column_sums + column;
  if constexpr (Config::kSequences) to += sequence * params.column_sums_stride;
  Pack<Epilogue::Data, 2> pair;
  pair.set({scale * x, scale * y});
  pair.store(to);
}

// The same of a tile, which may have a part of their terms. Columns behind the last one have none.
template <class Config, class Params>
__device__ __forceinline__ void store_column_sums(const Params& params, const WorkTile& tile, int column, float x,
                                                  float y) {
  const int columns = summed_columns<Config>(params);
  if (column >= columns) return;
  if constexpr (Config::kSplitK > 1) {
    *reinterpret_cast<float2*>(params.column_partials + tile.split * columns + column) = make_float2(x, y);
  } else {
    store_scaled_sums<Config>(params, tile.sequence, column, x, y);
  }
}

// Adds up the parts, in their order. All threads of the grid call.
template <class Config, class Params>
__device__ __forceinline__ void add_column_partials(const Params& params) {
  const int columns = summed_columns<Config>(params);
  for (int column = (blockIdx.x * blockDim.x + threadIdx.x) * 2; column < columns;
       column += gridDim.x * blockDim.x * 2) {
    float x = 0, y = 0;
#pragma unroll 4
    for (int split = 0; split < Config::kSplitK; ++split) {
      const float2 part = *reinterpret_cast<const float2*>(params.column_partials + split * columns + column);
      x += part.x;
      y += part.y;
    }
    store_scaled_sums<Config>(params, /*sequence=*/0, column, x, y);
  }
}

}  // namespace gemm
