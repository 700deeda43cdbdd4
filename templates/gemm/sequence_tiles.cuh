// Products of sequences: which tiles a CTA computes. Offsets may hold anything: rows are those that tensors have.
#pragma once
#include "common/jagged.cuh"
#include "common/schedule/semaphore.cuh"
#include "gemm/tile_scheduler.cuh"

namespace gemm {

// Rows of the result are those of sequences, or sums are, and each sequence has a result of its own.
template <class Config>
constexpr bool kRowsOfSequences = Config::kSequences != 0 && Config::kSumsRows == 0;
template <class Config>
constexpr bool kSumsOfSequences = Config::kSequences != 0 && Config::kSumsRows != 0;

template <class Config>
constexpr int kColumnTiles = (Config::kColumns + Config::kBlockN - 1) / Config::kBlockN;

template <class Params>
__device__ __forceinline__ Sequence rows_of_sequence(const Params& params, i64 sequence, i64 total_rows) {
  decltype(params.seq_offsets) no_targets = nullptr;
  return load_sequence(params.seq_offsets, no_targets, static_cast<int>(sequence), total_rows);
}

// Finds tiles by their numbers, which rise from call to call. Those of rows of sequences are one sequence after the
// other, columns first: lanes look at 32 sequences at a time, from those on that the tile before was found in. All
// lanes of a warp call.
template <class Config, class Params, bool = kSumsOfSequences<Config>>
class TileFinder {
 public:
  __device__ __forceinline__ explicit TileFinder(const Params& params) : params_(params) {}

  // False behind the last one.
  __device__ __forceinline__ bool find(i64 number, WorkTile& tile) {
    const i64 row_tile = number / kColumnTiles<Config>;
    for (; first_ < params_.sequences; first_ += 32) {
      // A lane has one sequence, and the number of tiles up to its end.
      const int own = threadIdx.x % 32;
      Sequence sequence = {};
      if (first_ + own < params_.sequences) sequence = rows_of_sequence(params_, first_ + own, params_.rows);
      int behind = tiles_of(sequence.rows);
#pragma unroll
      for (int by = 1; by < 32; by *= 2) {
        const int other = __shfl_up_sync(~0u, behind, by);
        if (own >= by) behind += other;
      }
      const int all = __shfl_sync(~0u, behind, 31);
      if (row_tile < before_ + all) {
        const int within = static_cast<int>(row_tile - before_);
        const int lane = __ffs(__ballot_sync(~0u, behind > within)) - 1;
        const int first_tile = __shfl_sync(~0u, behind - tiles_of(sequence.rows), lane);
        tile.sequence = static_cast<int>(first_) + lane;
        tile.rows_begin = __shfl_sync(~0u, sequence.start, lane);
        tile.rows_end = tile.rows_begin + __shfl_sync(~0u, sequence.rows, lane);
        tile.row = tile.rows_begin + i64{within - first_tile} * Config::kBlockM;
        tile.column = static_cast<int>(number - row_tile * kColumnTiles<Config>) * Config::kBlockN;
        tile.end = (params_.depth + Config::kDepth - 1) / Config::kDepth;
        return true;
      }
      before_ += all;
    }
    return false;
  }

 private:
  static __device__ __forceinline__ int tiles_of(int rows) {
    return rows / Config::kBlockM + (rows % Config::kBlockM != 0);
  }

  const Params& params_;
  i64 first_ = 0, before_ = 0;  // of the sequences that are looked at, and tiles of those before them
};

// The tiles of one sequence's result after the other, rows first.
template <class Config, class Params>
class TileFinder<Config, Params, true> {
 public:
  __device__ __forceinline__ explicit TileFinder(const Params& params)
      : params_(params), row_tiles_(static_cast<int>((params.rows + Config::kBlockM - 1) / Config::kBlockM)) {}

  __device__ __forceinline__ bool find(i64 number, WorkTile& tile) const {
    const int tiles = row_tiles_ * kColumnTiles<Config>;
    const i64 sequence = number / tiles;
    if (sequence >= params_.sequences) return false;
    const int within = static_cast<int>(number - sequence * tiles);
    const Sequence rows = rows_of_sequence(params_, sequence, params_.depth);
    tile.sequence = static_cast<int>(sequence);
    tile.rows_begin = rows.start;
    tile.rows_end = rows.start + rows.rows;
    tile.row = i64{within % row_tiles_} * Config::kBlockM;
    tile.column = within / row_tiles_ * Config::kBlockN;
    tile.end = rows.rows / Config::kDepth + (rows.rows % Config::kDepth != 0);
    return true;
  }

 private:
  const Params& params_;
  const int row_tiles_;
};

// The tiles of this CTA, in rising order. Those of rows are taken in turns, since all take the same time. Sums are of
// different lengths: where there is a counter, whoever is free takes the next tile. All lanes of a warp call.
template <class Config, class Params>
class SequenceTiles {
 public:
  __device__ __forceinline__ explicit SequenceTiles(const Params& params)
      : params_(params), finder_(params), number_(blockIdx.x) {
    if constexpr (Config::kTileCounter) number_ = take();
  }

  // False behind the last one.
  __device__ __forceinline__ bool next(WorkTile& tile) {
    i64 number = number_;
    if constexpr (Config::kTileCounter) {
      number = __shfl_sync(~0u, number_, 0);
      number_ = take();  // it has until the next call to arrive
    } else {
      number_ += gridDim.x;
    }
    tile.split = 0;
    tile.first = 0;
    return finder_.find(number, tile);
  }

 private:
  __device__ __forceinline__ i64 take() const {
    return threadIdx.x % 32 == 0 ? static_cast<i64>(take_number(params_.tile_counter)) : 0;
  }

  const Params& params_;
  TileFinder<Config, Params> finder_;
  i64 number_;  // of the next tile; taken from a counter, in the first lane
};

}  // namespace gemm
