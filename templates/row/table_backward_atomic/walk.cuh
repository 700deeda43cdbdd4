// The pass over the rows, a tile of a few sequences at a time.
#pragma once
#include "row/row_gradients.cuh"
#include "row/table_backward_atomic/sums.cuh"
#include "row/table_backward_atomic/tiles.cuh"

template <class Spec, class Config, class Operands, class Row, class Params>
class TileWalk {
 public:
  using Layout = RowLayout<Spec, Config>;
  using Sums = typename Operands::TableSums;
  static constexpr int kWidth = Spec::kWidth;
  // A tile finds as many rows of the first table as there are slots, the same ones in each sequence.
  static constexpr int kTileRows = Config::kSlots;
  using Slots = SlotSums<Layout, Config::kSlots, kWidth>;
  static_assert(Layout::kRows == Slots::kGroupsOfWarp, "a CTA is a warp, or the warps of a row");

  // Of the keys of a tile's rows, for each warp and table.
  static constexpr int kKeys = Layout::kThreads / 32 * Sums::kCount * kTileRows;
  static constexpr int kSharedBytes = Slots::kBytes + (Slots::kTags + kKeys + 1) * 4;

  __device__ __forceinline__ TileWalk(const Params& params, unsigned char* shared)
      : params_(params),
        inputs_(params),
        slots_(reinterpret_cast<float*>(shared), reinterpret_cast<u32*>(shared + Slots::kBytes)),
        keys_(reinterpret_cast<u32*>(shared + Slots::kBytes) + Slots::kTags +
              threadIdx.x / 32 * Sums::kCount * kTileRows),
        next_unit_(reinterpret_cast<u32*>(shared + kSharedBytes) - 1) {
    if constexpr (kWrites) Operands::row_outputs(params, gradients_.data, gradients_.strides);
    get_totals(params, totals_);
  }

  // Units are tiles of kTileSequences sequences. There are about twice as many tiles as the mean sequence has; of those
  // that have more, tiles so far apart are one unit's. CTAs take the next unit when they have done one, those of the most
  // sequences first.
  __device__ __forceinline__ void run() {
    const i64 batch = Operands::Sequences::count(params_);
    if (batch <= 0) return;
    const i64 groups = (batch + Config::kTileSequences - 1) / Config::kTileSequences;
    const i64 tiles = min(2 * params_.rows / batch / kTileRows + 1, kMaxTiles);
    i64 unit = blockIdx.x;
    while (unit < tiles * groups) {
      // The next one is asked for early, and waited for late.
      u32 next = 0;
      if (threadIdx.x == 0) next = atomicAdd(params_.unit_count, 1u);
      go_through(unit / groups, tiles, unit % groups, batch);
      if (threadIdx.x == 0) *next_unit_ = next;
      __syncthreads();
      unit = static_cast<i64>(gridDim.x) + *next_unit_;
      __syncthreads();
    }
    slots_.flush(totals_[0]);
#pragma unroll
    for (int table = 1; table < Sums::kCount; ++table) recent_[table - 1].flush(totals_[table]);
  }

  static __device__ __forceinline__ void get_totals(const Params& params, TableTotals (&totals)[Sums::kCount]) {
    float* data[Sums::kCount];
    i64 strides[Sums::kCount];
    Totals::rows(params, data, strides);
#pragma unroll
    for (int table = 0; table < Sums::kCount; ++table) totals[table] = {data[table], strides[table]};
  }

 private:
  using Operand = Inputs<Layout, Operands, Config, Row>;
  static constexpr bool kWrites = Operands::kRowOutputs > 0;
  static constexpr int kAhead = Config::kRowsAhead, kGroups = Slots::kGroupsOfWarp;
  static constexpr i64 kMaxTiles = 4096;

  __device__ __forceinline__ void go_through(i64 first, i64 tiles, i64 group, i64 batch) {
    const int lane = threadIdx.x % 32;
    const i64 sequence = lane < Config::kTileSequences ? group * Config::kTileSequences + lane : batch;
    const CutSequence own = cut<Operands, kTileRows>(params_, sequence, batch);
    const i64 past = (own.first_tile - first) % tiles;  // of a number that may be negative
    i64 tile = own.first_tile + (past > 0 ? tiles - past : -past);
#pragma unroll 1
    for (;; tile += tiles) {
      u32 left = __ballot_sync(~0u, tile <= own.last_tile);
      if (left == 0) return;
#pragma unroll 1
      for (; left != 0; left &= left - 1)
        add_tile(rows_of_tile<kTileRows>(own, tile, __ffs(left) - 1));
    }
  }

  __device__ __forceinline__ void add_tile(const TileRows& tile) {
    typename Operand::Row held[kAhead];
    load(tile, 0, held);
    find_keys(tile);
    __syncwarp();
#pragma unroll 1
    for (int first = 0; first < tile.rows; first += kAhead * kGroups) {
      if (first > 0) load(tile, first, held);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int at = place_of(first, i);
        add_row(tile.begin + tile.position + at, held[i], at < tile.rows ? at : -1);
      }
    }
    __syncwarp();
  }

  // Groups of a warp take turns with the rows of a tile.
  static __device__ __forceinline__ int place_of(int first, int i) {
    return first + i * kGroups + threadIdx.x % 32 / Layout::kLanesPerRow;
  }

  __device__ __forceinline__ void load(const TileRows& tile, int first, typename Operand::Row (&held)[kAhead]) const {
    // Without branches: behind the last row it is loaded again.
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      inputs_.load_existing(tile.begin + tile.position + min(place_of(first, i), tile.rows - 1), held[i]);
  }

  // Of each row of the tile, while its elements are on their way.
  __device__ __forceinline__ void find_keys(const TileRows& tile) const {
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < tile.rows; i += 32) {
      typename Operands::Sequences::Found found;
      const i64 row = tile.begin + tile.position + i;
      Operands::Sequences::find(params_, row, tile.sequence, tile.position + i, found);
#pragma unroll
      for (int table = 0; table < Sums::kCount; ++table)
        keys_[table * kTileRows + i] = found.sums[table] < 0 ? kNoKey : static_cast<u32>(found.sums[table]);
    }
  }

  // Of a tile's row `at`; -1: the group has none, but other groups of the warp have.
  __device__ __forceinline__ void add_row(i64 row, const typename Operand::Row& held, int at) {
    TableRowSums<Layout> found[Sums::kCount];
    if (at >= 0) {
      follow_row<Layout, Operands, Row, kWrites>(
          params_, inputs_, row, held, gradients_, [&](int chunk, int i, const float* summands) {
#pragma unroll
            for (int table = 0; table < Sums::kCount; ++table) found[table].elements[chunk][i] = summands[table];
          });
    }
    const auto add = [&](int table, TableRowSums<Layout>& sums) {
#pragma unroll
      for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
#pragma unroll
        for (int i = 0; i < Layout::kVector; ++i) sums.elements[chunk][i] += found[table].elements[chunk][i];
      }
    };
    const auto key = [&](int table) { return at >= 0 ? keys_[table * kTileRows + at] : kNoKey; };
    slots_.add(key(0), totals_[0], [&](TableRowSums<Layout>& sums) { add(0, sums); });
#pragma unroll
    for (int table = 1; table < Sums::kCount; ++table) {
      if (key(table) != kNoKey) add(table, recent_[table - 1].of(key(table), totals_[table]));
    }
  }

  const Params& params_;
  Operand inputs_;
  Slots slots_;
  RecentSums<Layout> recent_[at_least_one(Sums::kCount - 1)];
  u32* const keys_;  // of the warp's tile, of each table one after the other
  u32* const next_unit_;
  TableTotals totals_[Sums::kCount];
  RowGradients<Operands> gradients_;
};
