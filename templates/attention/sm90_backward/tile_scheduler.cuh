// Attention backward on Hopper: which tiles a CTA works on, in which order.
//
// "grid": one CTA per (sequence, head, role, tile). Of one (sequence, head), roles alternate, columns from the
// first and rows from the last tile on: those are the longest ones under a causal mask. CTAs past a sequence's end
// leave at once.
// "persistent": the grid fills the GPU once and each CTA walks its share of one list, first the tiles of columns,
// which take longer, then those of rows; or of keys, rows and values where dk and dv are summed up apart. Within a role
// the list is that of the forward kernel: see attention/schedule/tile_schedule.cuh. Where there is one role, CTAs take
// the next work tile of the list whenever they are free.
// "semaphore": semaphore_schedule.cuh, "per_sequence": per_sequence.cuh, both in sm90_backward_fused.
#pragma once
#include "attention/sequence.cuh"
#include "attention/sm90_backward/shared.cuh"
#include "attention/schedule/tile_schedule.cuh"

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

// The sequence of a work tile of a list, and its number among that sequence's. `entry`: of an earlier work tile of this
// CTA; they only grow. By a whole warp.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void find_work_tile(const Shared<Config>& shared, const Params& params, u32 work_tile,
                                               int& entry, int& sequence, int& within) {
  const int batch = static_cast<int>(params.batch);
  entry = find_entry(shared.schedule_first, entries_of<Config>(batch), entry, work_tile);
  within = static_cast<int>(work_tile - shared.schedule_first[entry]);
  if (is_sorted<Config>(batch)) {
    sequence = shared.schedule_order[entry];
  } else {
    const auto place =
        find_in_group<Spec, Config>(params, entry, within, shared.schedule_paired != 0,
                                    load_group_words<Spec>(params, entry * group_size<Config>(batch)));
    sequence = place.sequence;
    within = place.within;
  }
}

// Numbers of this CTA's work tiles of one role, the list's kIndex-th, counted from the role's first: dealt out round by
// round, in alternating direction. The list has `all` of each role.
template <int kIndex>
class DealtNumbers {
 public:
  template <class Params>
  __device__ __forceinline__ DealtNumbers(const Params&, i64 all)
      : all_(all), round_(kIndex * all / gridDim.x) {}  // in which the role before ends

  __device__ __forceinline__ void prepare() {}
  __device__ __forceinline__ i64 next() {
    i64 number;
    do number = of_round(round_++);
    while (number < 0);
    return number;
  }

 private:
  __device__ __forceinline__ i64 of_round(i64 round) const {
    const u32 across = round % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    return round * gridDim.x + across - kIndex * all_;
  }

  i64 all_, round_;
};

// This CTA's tiles of one role, the list's kIndex-th; used by one whole warp, all lanes in step.
template <int kIndex, class Spec, class Config, class Params, class Numbers = DealtNumbers<kIndex>>
class ListTileScheduler {
 public:
  __device__ __forceinline__ ListTileScheduler(const Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), numbers_(params, shared.schedule_total) {}

  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if (second_half_ >= 0) {
      tile.index = second_half_;
      second_half_ = -1;
      numbers_.prepare();
      return true;
    }
    const i64 work_tile = numbers_.next();
    if (work_tile >= shared_.schedule_total) return false;
    take(static_cast<u32>(work_tile), tile, sequence);
    return true;
  }

 private:
  static constexpr Role kRole = role_at<Config>(kIndex);

  __device__ __forceinline__ void take(u32 work_tile, Tile& tile, Sequence& sequence) {
    int index, within;
    find_work_tile<Spec, Config>(shared_, params_, work_tile, entry_, index, within);
    sequence = sequence_of<Spec, Config>(params_, index);
    if constexpr (kKeepSequence<Spec, Config>) tile.sequence = index;
    const int tiles = ceil_div(sequence.rows, Config::kBlockM);
    if (Config::kPairTiles && !shared_.schedule_paired) {
      tile.head = within % Spec::kHeads;
      tile.index = tile_at<kRole>(within / Spec::kHeads, tiles);
      return;
    }
    const int work_tiles = work_tiles_of(tiles, Config::kPairTiles);
    tile.head = within / work_tiles;
    const int position = within - tile.head * work_tiles;
    tile.index = tile_at<kRole>(position, tiles);
    const int opposite = tiles - 1 - position;
    if (Config::kPairTiles && position != opposite) second_half_ = tile_at<kRole>(opposite, tiles);
  }

  const Shared<Config>& shared_;
  const Params& params_;
  Numbers numbers_;
  int entry_ = 0;         // of the last work tile
  int second_half_ = -1;  // tile still to do of the current pair
};

}  // namespace sm90::backward
