// Attention backward on Hopper: which tiles a CTA works on, in which order.
//
// "grid": one CTA per (sequence, head, role, tile). Of one (sequence, head), roles alternate, columns from the
// first and rows from the last tile on: those are the longest ones under a causal mask. CTAs past a sequence's end
// leave at once.
// "persistent": the grid fills the GPU once and each CTA walks its share of one list, first the tiles of columns,
// which take longer, then those of rows; or of keys, rows and values where dk and dv are summed up apart. Within a role
// the list is that of the forward kernel: see sm90_forward/tile_scheduler.cuh.
// "semaphore": semaphore_schedule.cuh, "per_sequence": per_sequence.cuh, both in sm90_backward_fused.
#pragma once
#include "attention/sequence.cuh"
#include "attention/sm90_backward/shared.cuh"
#include "attention/sm90_forward/tile_scheduler.cuh"

namespace sm90::backward {

struct Tile {
  int head;
  int index;
  int sequence;  // its number in the batch; where kKeepSequence, at least
};

// The longest tiles first, where a causal mask makes them unequal.
template <Role kRole>
__device__ __forceinline__ int tile_at(int index, int tiles) {
  return kRole == Role::kRows ? tiles - 1 - index : index;
}

template <class Config>
__device__ __forceinline__ Role grid_role() {
  return role_at<Config>(blockIdx.x % Config::kRoles);
}

// The one tile of this CTA, whose role is grid_role.
template <class Spec, class Config, class Params>
class GridTileScheduler {
 public:
  __device__ __forceinline__ explicit GridTileScheduler(const Params& params) {
    const u32 tiles = ceil_div(params.max_query_rows, Config::kBlockM);
    const u32 work_tile = blockIdx.x / Config::kRoles, pair = work_tile / tiles;
    const int index = static_cast<int>(work_tile - pair * tiles), all = static_cast<int>(tiles);
    tile_.head = static_cast<int>(pair % Spec::kHeads);
    tile_.index =
        grid_role<Config>() == Role::kRows ? tile_at<Role::kRows>(index, all) : tile_at<Role::kColumns>(index, all);
    sequence_ = sequence_of<Spec, Config>(params, static_cast<int>(pair / Spec::kHeads));
    if constexpr (kKeepSequence<Spec, Config>) tile_.sequence = static_cast<int>(pair / Spec::kHeads);
  }

  __device__ __forceinline__ bool empty() const { return tile_.index * Config::kBlockM >= sequence_.rows; }

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

// This CTA's tiles of one role, the list's kIndex-th; used by one whole warp, all lanes in step.
template <int kIndex, class Spec, class Config, class Params>
class ListTileScheduler {
 public:
  __device__ __forceinline__ ListTileScheduler(const Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params) {
    round_ = kIndex * work_tiles() / gridDim.x;  // in which the role before ends
  }

  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if (second_half_ >= 0) {
      tile.index = second_half_;
      second_half_ = -1;
      return true;
    }
    if (!sorted()) return next_unsorted(tile, sequence);
    while (true) {
      const i64 work_tile = work_tile_of(round_++);
      if (work_tile < 0) continue;
      if (work_tile >= work_tiles()) return false;
      take_sorted(static_cast<u32>(work_tile), tile, sequence);
      return true;
    }
  }

 private:
  static constexpr Role kRole = role_at<Config>(kIndex);

  __device__ __forceinline__ bool sorted() const { return params_.batch <= Config::kScheduleSequences; }

  // This CTA's work tile of a round of the list, counted from the role's first.
  __device__ __forceinline__ i64 work_tile_of(i64 round) const {
    const u32 across = round % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    return round * gridDim.x + across - kIndex * work_tiles();
  }

  // Of one role. The list has as many of each.
  __device__ __forceinline__ i64 work_tiles() const {
    return sorted() ? shared_.schedule_total : params_.batch * Spec::kHeads * max_tiles();
  }

  // Of the longest sequence there may be.
  __device__ __forceinline__ int max_tiles() const { return ceil_div(params_.max_query_rows, Config::kBlockM); }

  __device__ __forceinline__ void take_sorted(u32 work_tile, Tile& tile, Sequence& sequence) {
    sorted_index_ =
        find_sorted_index(shared_.schedule_first, params_.batch, sorted_index_, work_tile);  // work tiles only grow
    const int within = static_cast<int>(work_tile - shared_.schedule_first[sorted_index_]);
    sequence = sequence_of<Spec, Config>(params_, shared_.schedule_order[sorted_index_]);
    if constexpr (kKeepSequence<Spec, Config>) tile.sequence = shared_.schedule_order[sorted_index_];
    const int tiles = ceil_div(sequence.rows, Config::kBlockM);
    if (Config::kPairTiles && !shared_.schedule_paired) {
      tile.head = within % Spec::kHeads;
      tile.index = tile_at<kRole>(within / Spec::kHeads, tiles);
      return;
    }
    const int work_tiles = work_tiles_of(tiles, Config::kPairTiles);
    tile.head = within / work_tiles;
    const int index = within - tile.head * work_tiles;
    tile.index = tile_at<kRole>(index, tiles);
    if (Config::kPairTiles && index != tiles - 1 - index) second_half_ = tile_at<kRole>(tiles - 1 - index, tiles);
  }

  // Work tiles in (tile, sequence, head) order, most of them empty where sequences are short: CTAs get as many of each
  // tile. Each lane looks at one of 32 rounds, so that they take as long as one.
  __device__ __forceinline__ bool next_unsorted(Tile& tile, Sequence& sequence) {
    while (found_ == 0) {
      if (round_ * gridDim.x - kIndex * work_tiles() >= work_tiles()) return false;
      const i64 work_tile = work_tile_of(round_ + threadIdx.x % 32);
      found_ =
          __ballot_sync(~0u, work_tile >= 0 && work_tile < work_tiles() && take_unsorted(work_tile, tile, sequence));
      found_round_ = round_;
      round_ += 32;
    }
    take_unsorted(work_tile_of(found_round_ + __ffs(found_) - 1), tile, sequence);
    found_ &= found_ - 1;
    return true;
  }

  // False where the sequence has no such tile.
  __device__ __forceinline__ bool take_unsorted(i64 work_tile, Tile& tile, Sequence& sequence) {
    const i64 pairs = params_.batch * Spec::kHeads, index = work_tile / pairs, pair = work_tile - index * pairs;
    tile.head = static_cast<int>(pair % Spec::kHeads);
    tile.index = tile_at<kRole>(static_cast<int>(index), max_tiles());
    sequence = sequence_of<Spec, Config>(params_, static_cast<int>(pair / Spec::kHeads));
    if constexpr (kKeepSequence<Spec, Config>) tile.sequence = static_cast<int>(pair / Spec::kHeads);
    return tile.index * Config::kBlockM < sequence.rows;
  }

  const Shared<Config>& shared_;
  const Params& params_;
  i64 round_ = 0;
  int sorted_index_ = 0;  // of the work tile's sequence
  int second_half_ = -1;  // tile still to do of the current pair
  u32 found_ = 0;         // bit i: round found_round_ + i of an unsorted list has a tile for this CTA
  i64 found_round_ = 0;
};

}  // namespace sm90::backward
