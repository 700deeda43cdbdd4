// hstu_attention forward on Hopper: which row tiles a CTA works on, in which order.
//
// "grid": one CTA per (sequence, head, row tile), last row tile first; CTAs past a sequence's end leave at once.
// With kSplit a cluster of CTAs, as large as the launch makes it, splits the columns of one tile: of a causal mask's
// first row tiles, some of its CTAs have none. Where contextual rows see everything and others only a window, the
// first row tiles are by far the longest, and with semi-local attention those of targets, the last ones. They go before
// all others, or before the others of their sequence where a list is not sorted. "persistent": the grid fills the GPU
// once and each CTA walks its share of a static list: see tile_schedule.cuh.
#pragma once
#include "attention/schedule/tile_schedule.cuh"
#include "attention/sequence.cuh"
#include "attention/sm90_forward/shared.cuh"
#include "common/ptx/cluster.cuh"
#include "common/regions.cuh"

namespace sm90 {

struct Tile {
  int head;
  int row_tile;
  int sequence;  // its number in the batch; only where there is a bias
};

// Walks this CTA's tiles; used by one whole warp, all lanes in step. Two warps that walk at the same time see the
// same tiles.
template <class Spec, class Config, class Params>
class TileScheduler {
 public:
  __device__ __forceinline__ TileScheduler(const Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), batch_(static_cast<int>(params.batch)) {
    if constexpr (!Config::kSchedulePersistent) return;
    if (Config::kLongTileFirst && sorted()) weigh_long_tiles();
    find_work_tile();
  }

  // The next tile that has rows, with its sequence; false when there is none. The arguments hold what the last call
  // gave.
  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if constexpr (Config::kSchedulePersistent) return next_of_list(tile, sequence);
    return only_tile(tile, sequence);
  }

 private:
  __device__ __forceinline__ bool sorted() const { return is_sorted<Config>(batch_); }

  // Finds the only tile of a CTA of a grid, in (sequence, head, row tile) order; some of them are empty.
  __device__ __forceinline__ bool only_tile(Tile& tile, Sequence& sequence) {
    if (round_++ > 0) return false;
    const int tiles = ceil_div(params_.max_query_rows, Config::kBlockM);
#ifdef kHeadCluster
    // A work tile is the same tile of as many heads as the cluster has CTAs.
    constexpr int kHeadGroups = Spec::kHeads / Config::kHeadCluster;
    const i64 work_tile = cluster_index();
    const i64 pairs = static_cast<i64>(kHeadGroups) * batch_;
#else
    const i64 work_tile = Config::kSplit ? cluster_index() : blockIdx.x;
    const i64 pairs = static_cast<i64>(Spec::kHeads) * batch_;
#endif
    const bool is_long = Config::kLongTileFirst && work_tile < pairs;
    i64 pair;
    if (is_long) {
      pair = work_tile;
      tile.row_tile = 0;
    } else {
      const i64 rest = Config::kLongTileFirst ? work_tile - pairs : work_tile;
      const int others = Config::kLongTileFirst ? tiles - 1 : tiles;
      pair = rest / others;
      tile.row_tile = tiles - 1 - kLongLast - static_cast<int>(rest - pair * others);
    }
    if (pair >= pairs) return false;
#ifdef kHeadCluster
    tile.head = static_cast<int>(pair % kHeadGroups) * Config::kHeadCluster + static_cast<int>(cluster_rank());
    sequence = sequence_of<Spec, Config>(params_, static_cast<int>(pair / kHeadGroups));
#else
    tile.head = static_cast<int>(pair % Spec::kHeads);
    sequence = sequence_of<Spec, Config>(params_, static_cast<int>(pair / Spec::kHeads));
#endif
#ifdef kHeadCluster
    if constexpr (Spec::Bias::kHeads > 0) tile.sequence = static_cast<int>(pair / kHeadGroups);
#else
    if constexpr (Spec::Bias::kHeads > 0) tile.sequence = static_cast<int>(pair / Spec::kHeads);
#endif
    const int rows = sequence.rows - sequence.query_begin;
    if (kLongLast && is_long) tile.row_tile = max(ceil_div(rows, Config::kBlockM) - 1, 0);
    // The sequence's last tile, where that is the long one, is none of the others.
    return (tile.row_tile + (kLongLast && !is_long)) * Config::kBlockM < rows;
  }

  __device__ __forceinline__ bool next_of_list(Tile& tile, Sequence& sequence) {
    if (second_half_ >= 0) {
      tile.row_tile = second_half_;
      second_half_ = -1;
      return true;
    }
    if (within_ < 0) return false;
    if (!sorted()) {
      const auto place = find_in_group<Spec, Config>(params_, entry_, within_, shared_.schedule_paired != 0, words_);
      index_ = place.sequence;
      within_ = place.within;
      words_ = place.words;
    }
    sequence = clamp_words(words_, params_.total_rows);
#ifdef kSequenceNumber
    identify(sequence, params_, index_);
#endif
    if constexpr (Spec::Bias::kHeads > 0) tile.sequence = index_;
    const int tiles = ceil_div(sequence.rows, Config::kBlockM);
    if (Config::kLongTileFirst && sorted()) {
      const int others = tiles - 1;
      tile.head = at_long_tile_ ? within_ : within_ / others;
      tile.row_tile = at_long_tile_ ? others * kLongLast : others - kLongLast - (within_ - tile.head * others);
    } else if (!Config::kPairTiles || shared_.schedule_paired) {
      const int work_tiles = work_tiles_of(tiles, Config::kPairTiles);
      tile.head = within_ / work_tiles;
      const int position = within_ - tile.head * work_tiles;
      tile.row_tile = Config::kLongTileFirst && !kLongLast ? (tiles - position) % tiles : tiles - 1 - position;
      if (Config::kPairTiles && position != tiles - 1 - position) second_half_ = position;
    } else {
      tile.head = within_ % Spec::kHeads;
      tile.row_tile = tiles - 1 - within_ / Spec::kHeads;
    }
    find_work_tile();
    return true;
  }

  // Finds this CTA's work tile of the next round and starts to load its sequence: the loads take longer than all the
  // rest, and are needed one call later.
  __device__ __forceinline__ void find_work_tile() {
    if (Config::kLongTileFirst && sorted()) return find_work_tile_of_unequal();
    const int across = round_ % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    const i64 wide = static_cast<i64>(round_++) * gridDim.x + across;
    if (wide >= shared_.schedule_total) {
      within_ = -1;
      return;
    }
    find_listed(static_cast<u32>(wide));
  }

  // Entries only grow from work tile to work tile.
  __device__ __forceinline__ void find_listed(u32 work_tile) {
    entry_ = find_entry(shared_.schedule_first, entries_of<Config>(batch_), entry_, work_tile);
    within_ = static_cast<int>(work_tile - shared_.schedule_first[entry_]);
    if (sorted()) {
      load_sequence_of(entry_);
    } else {
      words_ = load_group_words<Spec>(params_, entry_ * group_size<Config>(batch_));
    }
  }

  __device__ __forceinline__ void load_sequence_of(int sorted_index) {
    index_ = shared_.schedule_order[sorted_index];
    words_ = load_words(params_.seq_offsets, num_targets_of<Spec>(params_), index_);
  }

  // With kLongTileFirst the long tiles of all sequences and heads are dealt out first, and the list has the others. A
  // long tile takes as long as several others, so a CTA that has one leaves out as many rounds of them. Each lane knows
  // that number of the sequence of its sorted index.
  __device__ __forceinline__ void weigh_long_tiles() {
    const int lane = threadIdx.x % 32;
    if (lane >= shared_.schedule_sequences) return;
    const Sequence sequence = sequence_of<Spec, Config>(params_, shared_.schedule_order[lane]);
    const int last = sequence.rows - 1, first = kLongLast ? last / Config::kBlockM * Config::kBlockM : 0;
    int begin, end;
    mask_columns(first, min(first + Config::kBlockM - 1, last), sequence.rows, sequence.targets, begin, end);
    constexpr int kTileColumns = 512;  // what a tile takes once, as columns
    lane_rounds_ = (end - begin + kTileColumns) / (Config::kOtherTileColumns + kTileColumns);
  }

  __device__ __forceinline__ void find_work_tile_of_unequal() {
    const u32 longs = static_cast<u32>(shared_.schedule_sequences) * Spec::kHeads;
    const bool weighed = shared_.schedule_sequences <= 32 && longs <= gridDim.x;
    i64 place = blockIdx.x + static_cast<i64>(round_) * gridDim.x, listed = place - longs;
    at_long_tile_ = place < longs && (!weighed || round_ == 0);
    if (!weighed) {
      ++round_;
    } else if (at_long_tile_) {
      const int rounds = max(__shfl_sync(~0u, lane_rounds_, static_cast<int>(place) / Spec::kHeads), 1);
      for (; round_ < rounds; ++round_) dealt_ += gridDim.x - blocks_at_long_tiles();
    } else {
      const u32 absent = blocks_at_long_tiles();
      listed = dealt_ + static_cast<i64>(blockIdx.x) - absent;
      dealt_ += gridDim.x - absent;
      ++round_;
    }
    if (at_long_tile_) {
      within_ = static_cast<int>(place) % Spec::kHeads;
      load_sequence_of(static_cast<int>(place) / Spec::kHeads);
    } else if (listed >= shared_.schedule_total) {
      within_ = -1;
    } else {
      find_listed(static_cast<u32>(listed));
    }
  }

  // In the current round.
  __device__ __forceinline__ u32 blocks_at_long_tiles() const {
    const bool present = threadIdx.x % 32 < shared_.schedule_sequences;
    return __popc(__ballot_sync(~0u, present && max(lane_rounds_, 1) > round_)) * Spec::kHeads;
  }

  static constexpr int kLongLast = Config::kLongTileIsLast;  // 1: the long tile is the last one, 0: the first

  const Shared<Config>& shared_;
  const Params& params_;
  const int batch_;
  int round_ = 0;
  int lane_rounds_ = 0;        // of the others, that the first tile of the sequence of this lane's sorted index takes
  i64 dealt_ = 0;              // of the others, in earlier rounds
  bool at_long_tile_ = false;  // the work tile is the long tile of head `within_`
  int second_half_ = -1;       // row tile still to do of the current pair
  // The work tile after the current one, of a list:
  int entry_ = 0;
  int within_ = -1;  // its number within the entry; < 0: there is none
  int index_ = 0;    // its sequence; of a group, once it has been looked for
  decltype(load_words(Params().seq_offsets, Params().seq_offsets, 0)) words_ = {};  // or those of a lane's of the group
};

}  // namespace sm90
