// The consumer warps: a group of threads has some rows of each tile, writes their gradients, and adds them to sums.
#pragma once
#include "row/table_backward_atomic/shared.cuh"

template <class Spec, class Config, class Operands, class Row, class Params>
class TileConsumer {
 public:
  using Layout = RowLayout<Spec, Config>;
  using Shared = TileShared<Layout, Operands, Config>;
  using Sums = typename Operands::TableSums;

  __device__ __forceinline__ TileConsumer(const Params& params, Shared& shared)
      : params_(params), shared_(shared), inputs_(params) {
    if constexpr (kWrites) Operands::row_outputs(params, gradients_.data, gradients_.strides);
    get_totals(params, totals_);
#pragma unroll
    for (int table = 1; table < Sums::kCount; ++table) {
      using Recent = typename Shared::Recent;
      recent_[table - 1].init(shared.recent + (table - 1) * Recent::kFloats,
                              shared.recent_keys + (table - 1) * Recent::kKeys);
    }
  }

  __device__ __forceinline__ void run() {
    sm90::PipelineState<Shared::kStages> pipeline;
#pragma unroll 1
    for (;;) {
      const int stage = pipeline.stage();
      mbarrier_wait(shared_address(&shared_.full[stage]), pipeline.phase());
      const TileInfo tile = shared_.info[stage];
      if (tile.rows == 0) break;
      slots_.at(tile.key + group_, totals_[0]);
      add_tile(tile, stage);
      pipeline.advance();
    }
    slots_.flush(totals_[0]);
#pragma unroll
    for (int table = 1; table < Sums::kCount; ++table) recent_[table - 1].flush(totals_[table]);
  }

  static __device__ __forceinline__ void get_totals(const Params& params, TableTotals (&totals)[Sums::kCount]) {
    float* data[Sums::kCount];
    Totals::rows(params, data);
#pragma unroll
    for (int table = 0; table < Sums::kCount; ++table) totals[table] = {data[table], Spec::kWidth};
  }

 private:
  using Operand = Inputs<Layout, Operands, Config, Row>;
  static constexpr bool kWrites = Operands::kRowOutputs > 0;
  static constexpr int kAhead = Config::kRowsAhead, kSlots = Config::kSlots;
  static_assert(kSlots % kAhead == 0, "the last rows are on their way when a tile is given back");

  struct LoadedRow {
    typename Operand::Row held;
    u32 keys[Sums::kCount];
    bool exists;
  };

  // The rows of a tile that a group has, one slot after the other.
  struct Slots {
    const unsigned char* from;  // the slot's row of the first input, in shared memory
    int from_step;
    int at, at_step;  // in the tile
    RowGradients<Operands> gradients;
    i64 gradient_steps[at_least_one(Operands::kRowOutputs)];  // in bytes
  };

  __device__ __forceinline__ Slots slots_of(const TileInfo& tile, int stage) const {
    Slots slots;
    slots.at = (group_ - tile.place) * tile.slope;
    slots.at_step = tile.slope * Layout::kRows;
    slots.from = shared_.rows[stage][0][0] + slots.at * Shared::kRowBytes;
    slots.from_step = slots.at_step * Shared::kRowBytes;
#pragma unroll
    for (int output = 0; output < Operands::kRowOutputs; ++output) {
      const i64 row_bytes = gradients_.strides[output] * Operands::Data::kBytes;
      slots.gradients.data[output] =
          static_cast<unsigned char*>(gradients_.data[output]) + (tile.row + slots.at) * row_bytes;
      slots.gradients.strides[output] = 0;
      slots.gradient_steps[output] = slots.at_step * row_bytes;
    }
    return slots;
  }

  __device__ __forceinline__ void add_tile(const TileInfo& tile, int stage) {
    Slots slots = slots_of(tile, stage);
#pragma unroll
    for (int first = 0; first < kSlots; first += kAhead) {
      LoadedRow rows[kAhead];
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        rows[i].exists = static_cast<u32>(slots.at) < static_cast<u32>(tile.rows);
        if (rows[i].exists) load(slots, stage, first + i, rows[i]);
        slots.at += slots.at_step;
        slots.from += slots.from_step;
      }
      if (first + kAhead == kSlots) release(stage);
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        if (rows[i].exists) add_row(slots.gradients, first + i, rows[i]);
#pragma unroll
        for (int output = 0; output < Operands::kRowOutputs; ++output)
          slots.gradients.data[output] =
              static_cast<unsigned char*>(slots.gradients.data[output]) + slots.gradient_steps[output];
      }
    }
  }

  // Groups of the CTA take turns with the places of a tile.
  __device__ __forceinline__ int place_of(int slot) const { return slot * Layout::kRows + group_; }

  __device__ __forceinline__ void load(const Slots& slots, int stage, int slot, LoadedRow& row) const {
#pragma unroll
    for (int table = 0; table < Sums::kCount; ++table) row.keys[table] = shared_.keys[stage][place_of(slot)][table];
#pragma unroll
    for (int input = 0; input < Operands::kRowInputs; ++input) {
#pragma unroll
      for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
        if (Layout::has(chunk))
          row.held.packs[input][chunk].load_shared(slots.from + input * Shared::kTileRows * Shared::kRowBytes +
                                                   Layout::column(chunk) * Operands::Data::kBytes);
      }
    }
  }

  __device__ __forceinline__ void release(int stage) const {
    __syncwarp();
    sm90::arrive_as_warp<Config::kLanesArrive>(shared_.empty[stage]);
  }

  // Its gradients go to the beginning of `gradients`.
  __device__ __forceinline__ void add_row(const RowGradients<Operands>& gradients, int slot, const LoadedRow& row) {
    TableRowSums<Layout> found[Sums::kCount];
    follow_row<Layout, Operands, Row, kWrites>(params_, inputs_, 0, row.held, gradients,
                                               [&](int chunk, int i, const float* summands) {
#pragma unroll
                                                 for (int table = 0; table < Sums::kCount; ++table)
                                                   found[table].elements[chunk][i] = summands[table];
                                               });
    slots_.add(slot, row.keys[0], totals_[0], found[0]);
#pragma unroll
    for (int table = 1; table < Sums::kCount; ++table)
      recent_[table - 1].add(row.keys[table], found[table], totals_[table]);
  }

  const Params& params_;
  Shared& shared_;
  Operand inputs_;
  const int group_ = Layout::row_of_cta();
  SlotSums<Layout, kSlots> slots_;
  typename Shared::Recent recent_[at_least_one(Sums::kCount - 1)];
  TableTotals totals_[Sums::kCount];
  RowGradients<Operands> gradients_;
};
