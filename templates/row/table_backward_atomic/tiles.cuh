// Rows of sequences in tiles: neighbouring rows of some sequences, those whose rows of a table are the same. A
// sequence's rows find neighbouring rows of a table, in that order or in the other one, but where it begins or ends. So
// it is cut where the row of the table is a multiple of a tile's rows, and the n-th tile of sequences that begin or end
// elsewhere finds the same rows. Wherever it is cut, each row is in one tile.
#pragma once
#include "row/sequences.cuh"

// There are at most 2^28 rows: places, and numbers of tiles, are 32-bit integers.
template <int kTileRows>
__device__ __forceinline__ int tile_of(int place) {
  return place >= 0 ? place / kTileRows : -((kTileRows - 1 - place) / kTileRows);
}

// A sequence, and how it is cut: row i has the place origin + slope * i, and the tile of that over the rows of a tile.
struct CutSequence {
  int sequence;
  i64 begin;
  int rows;
  int origin;
  int slope;  // 1 or -1
  int first_tile, last_tile;
};

// The row of the first table that a row of a sequence finds.
template <class Operands, class Params>
__device__ __forceinline__ int first_key(const Params& params, int sequence, i64 begin, int position) {
  typename Operands::Sequences::Found found;
  Operands::Sequences::find(params, begin + position, sequence, position, found);
  return static_cast<int>(found.sums[0]);
}

// Offsets may hold anything: of a sequence there are the rows that tensors have.
template <class Operands, int kTileRows, class Params>
__device__ __forceinline__ CutSequence cut(const Params& params, int sequence, int batch) {
  using Sequences = typename Operands::Sequences;
  CutSequence cut = {sequence, 0, 0, 0, 1, 0, -1};  // without tiles
  if (sequence >= batch) return cut;
  cut.begin = max(0ll, min(Sequences::first_row(params, sequence), params.rows));
  cut.rows = static_cast<int>(max(0ll, min(Sequences::first_row(params, sequence + 1), params.rows) - cut.begin));
  if (cut.rows == 0) return cut;
  // As rows in the middle do it, which neither begin nor end the sequence.
  const int middle = cut.rows / 2;
  const int key = first_key<Operands>(params, sequence, cut.begin, middle);
  const int next = first_key<Operands>(params, sequence, cut.begin, min(middle + 1, cut.rows - 1));
  cut.slope = next < key ? -1 : 1;
  cut.origin = key - cut.slope * middle;
  const int last = cut.origin + cut.slope * (cut.rows - 1);
  cut.first_tile = tile_of<kTileRows>(min(cut.origin, last));
  cut.last_tile = tile_of<kTileRows>(max(cut.origin, last));
  return cut;
}

// Rows of a sequence in one of its tiles.
struct TileRows {
  int sequence;
  i64 begin;     // the sequence's first row
  int position;  // in the sequence, of the tile's first row
  int rows;
  int place, slope;  // of the first row in the tile, and from there to the next one
  u32 key;           // of place 0, in the middle of a sequence
};

// Lane `lane` has the sequence; all lanes ask.
template <int kTileRows>
__device__ __forceinline__ TileRows rows_of_tile(const CutSequence& own, int tile, int lane) {
  const int origin = __shfl_sync(~0u, own.origin, lane), rows = __shfl_sync(~0u, own.rows, lane);
  const int at = __shfl_sync(~0u, tile, lane) * kTileRows;  // its lowest place
  TileRows found;
  found.slope = __shfl_sync(~0u, own.slope, lane);
  const int first = found.slope > 0 ? at - origin : origin - at - (kTileRows - 1);
  found.sequence = __shfl_sync(~0u, own.sequence, lane);
  found.begin = __shfl_sync(~0u, own.begin, lane);
  found.position = max(0, first);
  found.rows = min(first + kTileRows, rows) - found.position;
  found.place = origin + found.slope * found.position - at;
  found.key = static_cast<u32>(at);
  return found;
}
