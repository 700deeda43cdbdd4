// Attention backward on Hopper: the list of the "semaphore" schedule, of which CTAs take one tile after another.
//
// Sequences are in the order of "persistent". Of one sequence, the last tiles of all heads come first: with a causal
// mask each begins kBlockM rows before the tile it waits for, and comes to that one's rows after it. With
// kLastTilesFirst the last tiles of all sequences come first: where all tiles add to contextual rows, they wait for one
// another there, and those of many sequences should do so at the same time.
#pragma once
#include "attention/sequence.cuh"
#include "attention/schedule/tile_counter.cuh"
#include "attention/sm90_backward/tile_scheduler.cuh"

namespace sm90::backward {

// This CTA's tiles, as they come; used by one whole warp, all lanes in step.
template <class Spec, class Config, class Params>
class SemaphoreTileScheduler {
 public:
  __device__ __forceinline__ SemaphoreTileScheduler(const Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params) {
    prepare();
  }

  // May be called before next(): a while before, as a number takes its time, but not long before, as others wait for
  // what has been taken.
  __device__ __forceinline__ void prepare() {
    if (found_ != 0 || tile_counter_.prepared()) return;
    tile_counter_.prepare(params_.taken_tiles);
  }

  // False when there is no further tile.
  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if constexpr (Config::kLastTilesFirst) return next_by_index(tile, sequence);
    prepare();
    const i64 work_tile = tile_counter_.take();
    if (work_tile >= shared_.schedule_total) return false;
    int within;
    find_work_tile<Spec, Config>(shared_, params_, static_cast<u32>(work_tile), entry_, tile.sequence, within);
    sequence = sequence_of<Spec, Config>(params_, tile.sequence);
    const int tiles = ceil_div(sequence.rows, Config::kBlockM);
    tile.head = within % Spec::kHeads;
    tile.index = tiles - 1 - within / Spec::kHeads;
    return true;
  }

 private:
  static constexpr int kTogether = 2;

  // Work tiles in (index, sequence, head) order, indices from a sequence's last tile on, most of them empty where
  // sequences are short. A few are taken together, and each lane looks at one.
  __device__ __forceinline__ bool next_by_index(Tile& tile, Sequence& sequence) {
    const i64 pairs = params_.batch * Spec::kHeads;
    const i64 work_tiles = pairs * ceil_div(params_.max_query_rows, Config::kBlockM);
    while (found_ == 0) {
      prepare();
      first_work_tile_ = tile_counter_.take() * kTogether;
      if (first_work_tile_ >= work_tiles) return false;
      const int lane = threadIdx.x % 32;
      const i64 work_tile = first_work_tile_ + lane;
      found_ =
          __ballot_sync(~0u, lane < kTogether && work_tile < work_tiles && look_at(work_tile, pairs, tile, sequence));
    }
    look_at(first_work_tile_ + __ffs(found_) - 1, pairs, tile, sequence);
    found_ &= found_ - 1;
    return true;
  }

  // False where the sequence has no such tile.
  __device__ __forceinline__ bool look_at(i64 work_tile, i64 pairs, Tile& tile, Sequence& sequence) const {
    const i64 index = work_tile / pairs, pair = work_tile - index * pairs;
    tile.head = static_cast<int>(pair % Spec::kHeads);
    tile.sequence = static_cast<int>(pair / Spec::kHeads);
    sequence = sequence_of<Spec, Config>(params_, tile.sequence);
    tile.index = ceil_div(sequence.rows, Config::kBlockM) - 1 - static_cast<int>(index);
    return tile.index >= 0;
  }

  const Shared<Config>& shared_;
  const Params& params_;
  TileCounter tile_counter_;
  int entry_ = 0;         // of the last work tile
  u32 found_ = 0;         // bit i: work tile first_work_tile_ + i of a list by index is a tile, and this CTA's
  i64 first_work_tile_ = 0;
};

}  // namespace sm90::backward
