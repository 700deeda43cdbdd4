// Which tiles of the result a CTA computes, and in which order.
#pragma once
#include "common/types.cuh"

namespace gemm {

// A part of the sum of a tile.
struct WorkTile {
  i64 row;         // first row of the result
  int column;      // first column
  int split;       // of the sum
  i64 first, end;  // stages of the sum
  // Where sequences have products of their own (sequence_tiles.cuh):
  int sequence;              // the tile's; below 0: there is no tile
  i64 rows_begin, rows_end;  // the sequence's
};

// Tiles that CTAs take in turn, or clusters, whose CTAs have tiles one below the other. Those of a few rows of tiles go
// together, columns last, so that what they read of both factors stays in L2; the parts of a sum come one after the
// other. The last tiles of a cluster may be below the last row.
template <class Config>
class TileScheduler {
 public:
  // `share`: which CTA of its cluster this one is.
  __device__ __forceinline__ TileScheduler(i64 rows, i64 columns, i64 depth, int share)
      : first_of_share_(Config::kCluster == 1 ? 0 : share * Config::kBlockM),
        part_(Config::kClusterK == 1 ? 0 : share),
        row_tiles_((rows + kRows - 1) / kRows),
        column_tiles_(static_cast<int>((columns + Config::kBlockN - 1) / Config::kBlockN)),
        stages_((depth + Config::kDepth - 1) / Config::kDepth) {}

  // The tiles of this CTA: numbers of tiles, or of a cluster's.
  __device__ __forceinline__ i64 first() const { return blockIdx.x / kCtas; }
  __device__ __forceinline__ i64 step() const { return gridDim.x / kCtas; }
  __device__ __forceinline__ i64 count() const { return row_tiles_ * column_tiles_ * Config::kSplitK; }

  __device__ __forceinline__ WorkTile tile(i64 number) const {
    const i64 tiles = row_tiles_ * column_tiles_;
    const i64 round = Config::kSplitK == 1 ? 0 : number / tiles;  // tiles are gone through once for each part
    const i64 split = Config::kClusterK == 1 ? round : part_;
    const i64 within = number - round * tiles;
    const i64 band = within / (static_cast<i64>(Config::kRasterRows) * column_tiles_);
    const i64 first_row = band * Config::kRasterRows;
    const i64 left = row_tiles_ - first_row;
    const int rows = left < Config::kRasterRows ? static_cast<int>(left) : Config::kRasterRows;
    const int in_band = static_cast<int>(within - first_row * column_tiles_);
    WorkTile tile;
    tile.row = (first_row + in_band % rows) * kRows + first_of_share_;
    tile.column = in_band / rows * Config::kBlockN;
    tile.split = static_cast<int>(split);
    tile.first = stages_ * split / kParts;
    tile.end = stages_ * (split + 1) / kParts;
    tile.sequence = 0;
    return tile;
  }

 private:
  static constexpr i64 kRows = i64{Config::kBlockM} * Config::kCluster;
  static constexpr int kCtas = Config::kCluster * Config::kClusterK;  // that have tiles, or a tile's parts, together
  static constexpr int kParts = Config::kSplitK * Config::kClusterK;  // of a sum: one of both is 1

  const int first_of_share_;  // row of a cluster's tiles
  const int part_;            // of the sum of a cluster's tile
  const i64 row_tiles_;
  const int column_tiles_;
  const i64 stages_;
};

}  // namespace gemm
