// Attention backward on Hopper: which tiles a block works on, in which order.
//
// "grid": one block per (sequence, head, role, tile). Of one (sequence, head), roles take turns, columns from the
// first and rows from the last tile on: those are the longest ones under a causal mask. Blocks past a sequence's end
// leave at once.
// "persistent": the grid fills the GPU once and each block walks its share of one list, first the tiles of columns,
// which take longer, then those of rows; or of keys, rows and values where dk and dv are summed up apart. Within a role
// the list is that of the forward kernel: see sm90_schedule.cuh.
// "ordered": sm90_backward_ordered_schedule.cuh, "whole": sm90_backward_whole.cuh.
#pragma once
#include "attention/sequence.cuh"
#include "attention/sm90_backward/shared.cuh"
#include "attention/sm90_forward/tile_scheduler.cuh"

namespace sm90::backward {

struct Tile {
  int head;
  int line_tile;
  int sequence;  // its number in the batch; where kKeepSequence, at least
};

// The longest tiles first, where a causal mask makes them unequal.
template <Role kRole>
__device__ __forceinline__ int tile_at(int place, int tiles) {
  return kRole == Role::kRows ? tiles - 1 - place : place;
}

template <class Config>
__device__ __forceinline__ Role grid_role() {
  return role_at<Config>(blockIdx.x % Config::kRoles);
}

// The one tile of this block, whose role is grid_role.
template <class Spec, class Config, class Params>
class GridTileScheduler {
 public:
  __device__ __forceinline__ explicit GridTileScheduler(const Params& params) {
    const u32 tiles = ceil_div(params.max_query_rows, Config::kBlockM);
    const u32 item = blockIdx.x / Config::kRoles, pair = item / tiles;
    const int place = static_cast<int>(item - pair * tiles), all = static_cast<int>(tiles);
    tile_.head = static_cast<int>(pair % Spec::kHeads);
    tile_.line_tile =
        grid_role<Config>() == Role::kRows ? tile_at<Role::kRows>(place, all) : tile_at<Role::kColumns>(place, all);
    sequence_ = sequence_of<Spec, Config>(params, static_cast<int>(pair / Spec::kHeads));
    if constexpr (kKeepSequence<Spec, Config>) tile_.sequence = static_cast<int>(pair / Spec::kHeads);
  }

  __device__ __forceinline__ bool empty() const { return tile_.line_tile * Config::kBlockM >= sequence_.rows; }

  // False when there is no further tile.
  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if (taken_) return false;
    taken_ = true;
    tile = tile_;
    sequence = sequence_;
    return true;
  }

 private:
  Tile tile_;
  Sequence sequence_;
  bool taken_ = false;
};

// This block's tiles of one role, the list's kIndex-th; used by one whole warp, all lanes in step.
template <int kIndex, class Spec, class Config, class Params>
class ListTileScheduler {
 public:
  __device__ __forceinline__ ListTileScheduler(const Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params) {
    round_ = kIndex * items() / gridDim.x;  // in which the role before ends
  }

  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if (second_half_ >= 0) {
      tile.line_tile = second_half_;
      second_half_ = -1;
      return true;
    }
    if (!sorted()) return next_unsorted(tile, sequence);
    while (true) {
      const i64 item = item_of(round_++);
      if (item < 0) continue;
      if (item >= items()) return false;
      take_sorted(static_cast<u32>(item), tile, sequence);
      return true;
    }
  }

 private:
  static constexpr Role kRole = role_at<Config>(kIndex);

  __device__ __forceinline__ bool sorted() const { return params_.batch <= Config::kScheduleSequences; }

  // This block's item of a round of the list, counted from the role's first.
  __device__ __forceinline__ i64 item_of(i64 round) const {
    const u32 across = round % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    return round * gridDim.x + across - kIndex * items();
  }

  // Of one role. The list has as many of each.
  __device__ __forceinline__ i64 items() const {
    return sorted() ? shared_.schedule_total : params_.batch * Spec::kHeads * most_tiles();
  }

  // Of the longest sequence there may be.
  __device__ __forceinline__ int most_tiles() const { return ceil_div(params_.max_query_rows, Config::kBlockM); }

  __device__ __forceinline__ void take_sorted(u32 item, Tile& tile, Sequence& sequence) {
    sorted_index_ = find_sorted_index(shared_.schedule_first, params_.batch, sorted_index_, item);  // items only grow
    const int within = static_cast<int>(item - shared_.schedule_first[sorted_index_]);
    sequence = sequence_of<Spec, Config>(params_, shared_.schedule_order[sorted_index_]);
    if constexpr (kKeepSequence<Spec, Config>) tile.sequence = shared_.schedule_order[sorted_index_];
    const int tiles = ceil_div(sequence.rows, Config::kBlockM);
    if (Config::kPairTiles && !shared_.schedule_paired) {
      tile.head = within % Spec::kHeads;
      tile.line_tile = tile_at<kRole>(within / Spec::kHeads, tiles);
      return;
    }
    const int items = items_of(tiles, Config::kPairTiles);
    tile.head = within / items;
    const int place = within - tile.head * items;
    tile.line_tile = tile_at<kRole>(place, tiles);
    if (Config::kPairTiles && place != tiles - 1 - place) second_half_ = tile_at<kRole>(tiles - 1 - place, tiles);
  }

  // Items in (tile, sequence, head) order, most of them empty where sequences are short: blocks get as many of each
  // tile. Each lane looks at one of 32 rounds, so that they take as long as one.
  __device__ __forceinline__ bool next_unsorted(Tile& tile, Sequence& sequence) {
    while (found_ == 0) {
      if (round_ * gridDim.x - kIndex * items() >= items()) return false;
      const i64 item = item_of(round_ + threadIdx.x % 32);
      found_ = __ballot_sync(~0u, item >= 0 && item < items() && take_unsorted(item, tile, sequence));
      found_round_ = round_;
      round_ += 32;
    }
    take_unsorted(item_of(found_round_ + __ffs(found_) - 1), tile, sequence);
    found_ &= found_ - 1;
    return true;
  }

  // False where the sequence has no such tile.
  __device__ __forceinline__ bool take_unsorted(i64 item, Tile& tile, Sequence& sequence) {
    const i64 pairs = params_.batch * Spec::kHeads, place = item / pairs, pair = item - place * pairs;
    tile.head = static_cast<int>(pair % Spec::kHeads);
    tile.line_tile = tile_at<kRole>(static_cast<int>(place), most_tiles());
    sequence = sequence_of<Spec, Config>(params_, static_cast<int>(pair / Spec::kHeads));
    if constexpr (kKeepSequence<Spec, Config>) tile.sequence = static_cast<int>(pair / Spec::kHeads);
    return tile.line_tile * Config::kBlockM < sequence.rows;
  }

  const Shared<Config>& shared_;
  const Params& params_;
  i64 round_ = 0;
  int sorted_index_ = 0;  // of the item's sequence
  int second_half_ = -1;  // tile still to do of the current pair
  u32 found_ = 0;         // bit i: round found_round_ + i of an unsorted list has a tile for this block
  i64 found_round_ = 0;
};

}  // namespace sm90::backward
