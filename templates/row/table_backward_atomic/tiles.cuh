// Rows of sequences in tiles: neighbouring rows of some sequences, those whose rows of a table are the same. A sequence's
// rows find neighbouring rows of a table, in that order or in the other one, but where it begins or ends. So it is cut
// where the row of the table is a multiple of a tile's rows, and the n-th tile of sequences that begin or end elsewhere
// finds the same rows. Wherever it is cut, each row is in one tile.
#pragma once
#include "row/sequences.cuh"

template <int kTileRows>
__device__ __forceinline__ i64 tile_of(i64 place) {
  return place >= 0 ? place / kTileRows : -((kTileRows - 1 - place) / kTileRows);
}

// A sequence, and how it is cut: row i has the place origin + slope * i, and the tile of that over the rows of a tile.
struct CutSequence {
  i64 sequence, begin, rows;
  i64 origin;
  int slope;  // 1 or -1
  i64 first_tile, last_tile;
};

// The row of the first table that a row of a sequence finds.
template <class Operands, class Params>
__device__ __forceinline__ i64 first_key(const Params& params, i64 sequence, i64 begin, i64 position) {
  typename Operands::Sequences::Found found;
  Operands::Sequences::find(params, begin + position, sequence, position, found);
  return found.sums[0];
}

// Offsets may hold anything: of a sequence there are the rows that tensors have.
template <class Operands, int kTileRows, class Params>
__device__ __forceinline__ CutSequence cut(const Params& params, i64 sequence, i64 batch) {
  using Sequences = typename Operands::Sequences;
  CutSequence cut = {sequence, 0, 0, 0, 1, 0, -1};  // without tiles
  if (sequence >= batch) return cut;
  cut.begin = max(0ll, min(Sequences::first_row(params, sequence), params.rows));
  cut.rows = max(0ll, min(Sequences::first_row(params, sequence + 1), params.rows) - cut.begin);
  if (cut.rows == 0) return cut;
  // As rows in the middle do it, which neither begin nor end the sequence.
  const i64 middle = cut.rows / 2;
  const i64 key = first_key<Operands>(params, sequence, cut.begin, middle);
  const i64 next = first_key<Operands>(params, sequence, cut.begin, min(middle + 1, cut.rows - 1));
  cut.slope = next < key ? -1 : 1;
  cut.origin = key - cut.slope * middle;
  const i64 last = cut.origin + cut.slope * (cut.rows - 1);
  cut.first_tile = tile_of<kTileRows>(min(cut.origin, last));
  cut.last_tile = tile_of<kTileRows>(max(cut.origin, last));
  return cut;
}

// Rows of a sequence in one of its tiles.
struct TileRows {
  i64 sequence, begin;  // the sequence's first row
  i64 position;         // in the sequence, of the tile's first row
  int rows;
};

// Lane `lane` has the sequence; all lanes ask.
template <int kTileRows>
__device__ __forceinline__ TileRows rows_of_tile(const CutSequence& own, i64 tile, int lane) {
  const i64 origin = __shfl_sync(~0u, own.origin, lane), rows = __shfl_sync(~0u, own.rows, lane);
  const int slope = __shfl_sync(~0u, own.slope, lane);
  const i64 at = __shfl_sync(~0u, tile, lane) * kTileRows;  // its lowest place
  const i64 first = slope > 0 ? at - origin : origin - at - (kTileRows - 1);
  TileRows found;
  found.sequence = __shfl_sync(~0u, own.sequence, lane);
  found.begin = __shfl_sync(~0u, own.begin, lane);
  found.position = max(0ll, first);
  found.rows = static_cast<int>(min(first + kTileRows, rows) - found.position);
  return found;
}
