// Attention backward on Hopper: the list of the "ordered" schedule, of which blocks take one tile after another.
//
// Sequences are sorted as for "persistent". Of one sequence, the last tiles of all heads come first: with a causal mask
// each begins kBlockM rows before the tile it waits for, and comes to that one's rows after it. With kTilesByPlace
// the last tiles of all sequences come first: where all tiles add to contextual rows, they wait for one another there,
// and those of many sequences should do so at the same time.
#pragma once
#include "attention/sequence.cuh"
#include "attention/sm90_backward/tile_counter.cuh"
#include "attention/sm90_backward/tile_scheduler.cuh"

namespace sm90::backward {

// This block's tiles, as they come; used by one whole warp, all lanes in step.
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
    if (found_ != 0 || numbers_.prepared()) return;
    numbers_.prepare(params_.taken_tiles);
  }

  // False when there is no further tile.
  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if (Config::kTilesByPlace || params_.batch > Config::kScheduleSequences) return next_by_place(tile, sequence);
    prepare();
    const i64 item = numbers_.take();
    if (item >= shared_.schedule_total) return false;
    sorted_index_ = find_sorted_index(shared_.schedule_first, params_.batch, sorted_index_, static_cast<u32>(item));
    const int within = static_cast<int>(item - shared_.schedule_first[sorted_index_]);
    tile.sequence = shared_.schedule_order[sorted_index_];
    sequence = sequence_of<Spec, Config>(params_, tile.sequence);
    const int tiles = ceil_div(sequence.rows, Config::kBlockM);
    tile.head = within % Spec::kHeads;
    tile.line_tile = tiles - 1 - within / Spec::kHeads;
    return true;
  }

 private:
  static constexpr int kTogether = 2;

  // Items in (place, sequence, head) order, places from a sequence's last tile on, most of them empty where sequences
  // are short. A few are taken together, and each lane looks at one.
  __device__ __forceinline__ bool next_by_place(Tile& tile, Sequence& sequence) {
    const i64 pairs = params_.batch * Spec::kHeads;
    const i64 items = pairs * ceil_div(params_.max_query_rows, Config::kBlockM);
    while (found_ == 0) {
      prepare();
      first_item_ = numbers_.take() * kTogether;
      if (first_item_ >= items) return false;
      const int lane = threadIdx.x % 32;
      const i64 item = first_item_ + lane;
      found_ = __ballot_sync(~0u, lane < kTogether && item < items && look_at(item, pairs, tile, sequence));
    }
    look_at(first_item_ + __ffs(found_) - 1, pairs, tile, sequence);
    found_ &= found_ - 1;
    return true;
  }

  // False where the sequence has no such tile.
  __device__ __forceinline__ bool look_at(i64 item, i64 pairs, Tile& tile, Sequence& sequence) const {
    const i64 place = item / pairs, pair = item - place * pairs;
    tile.head = static_cast<int>(pair % Spec::kHeads);
    tile.sequence = static_cast<int>(pair / Spec::kHeads);
    sequence = sequence_of<Spec, Config>(params_, tile.sequence);
    tile.line_tile = ceil_div(sequence.rows, Config::kBlockM) - 1 - static_cast<int>(place);
    return tile.line_tile >= 0;
  }

  const Shared<Config>& shared_;
  const Params& params_;
  TileCounter numbers_;
  int sorted_index_ = 0;  // of the item's sequence
  u32 found_ = 0;         // bit i: item first_item_ + i of a list by place is a tile, and this block's
  i64 first_item_ = 0;
};

}  // namespace sm90::backward
