// Shared memory of a CTA: tiles of rows that the producer warp loads and the consumer warps add up, in turn.
#pragma once
#include "common/ptx/barrier.cuh"
#include "common/ptx/bulk_copy.cuh"
#include "common/schedule/pipeline.cuh"
#include "common/schedule/release.cuh"
#include "row/row_gradients.cuh"
#include "row/table_backward_atomic/sums.cuh"
#include "row/table_backward_atomic/tiles.cuh"

// A tile is full when its rows are announced, which one lane does, and its keys written.
template <class Config>
constexpr int kFullArrivals = 1 + sm90::kArrivalsPerWarp<Config::kLanesArrive>;

// Description of a tile for consumers.
struct TileInfo {
  i64 row;    // its first one
  int rows;   // 0: there are no more tiles
  int place;  // of the first row
  int slope;  // from a row's place to that of the next one: 1 or -1
  u32 key;    // the row of the first table that a row of place 0 finds, in the middle of a sequence
};

template <class Layout, class Operands, class Config>
struct TileShared {
  static constexpr int kStages = Config::kPipelineStages, kTables = Operands::TableSums::kCount;
  // Each group of threads has as many rows of a tile as it has sums.
  static constexpr int kTileRows = Config::kSlots * Layout::kRows;
  static constexpr int kRowBytes = Layout::kVectors * Layout::kVector * Operands::Data::kBytes;
  static_assert(kRowBytes % 16 == 0, "rows are copied in bulk");

  // Sums of each table but the first, and their keys.
  using Recent = RecentSums<Layout, Config::kRecentRows, Layout::kVectors * Layout::kVector>;

  unsigned char rows[kStages][Operands::kRowInputs][kTileRows][kRowBytes];
  __align__(16) float recent[at_least_one((kTables - 1) * Recent::kFloats)];
  u32 recent_keys[at_least_one((kTables - 1) * Recent::kKeys)];
  TileInfo info[kStages];
  u64 full[kStages];                      // when the rows are there, and when the keys are
  u64 empty[kStages];                     // when every consumer warp has read them
  u32 keys[kStages][kTileRows][kTables];  // rows of tables that the row of each place finds
};
