// hstu_attention forward on Hopper: which row tiles a CTA works on, in which order.
//
// "grid": one CTA per (sequence, head, row tile), last row tile first; CTAs past a sequence's end leave at once.
// With kSplit a cluster of CTAs, as large as the launch makes it, splits the columns of one tile: of a causal mask's
// first row tiles, some of its CTAs have none. Where contextual rows see everything and others only a window, the
// first row tiles are by far the longest and go before all others. "persistent": the grid fills the GPU once and each
// CTA walks a static list. Sequences are sorted by length, longest first; row tiles of one (sequence, head) are
// neighbours in the list, so that CTAs running at the same time share k and v in L2. Under a causal mask row tile r
// costs about r + 1 KV tiles, so a work tile is a pair of row tiles (r, last - r): all work tiles of a sequence cost
// the same and dealing them out round by round, in alternating direction, balances the CTAs. Of few sequences, work
// tiles are single tiles: see pairs_pay.
#pragma once
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

[[maybe_unused]] constexpr int kSortKeys = 64;  // sequences of at least this many row tiles count as equally long
// Counts of work tiles end here. No tensors that fit a GPU have so many, but offsets that overlap may ask for them, and
// a count that wraps would send a CTA to heads and rows that are not there.
[[maybe_unused]] constexpr u32 kMaxTiles = 0x7fffffff;

__device__ __forceinline__ int work_tiles_of(int row_tiles, bool paired) {
  return paired ? (row_tiles + 1) / 2 : row_tiles;
}

// Whether a work tile is a pair of row tiles. Few pairs do not share out evenly: then single tiles, the longest of all
// heads first, leave less of the grid idle. By whole warps; the same for all of them.
template <class Spec, class Config, class RowTiles>
__device__ __forceinline__ bool pairs_pay(int batch, const RowTiles& row_tiles) {
  if constexpr (!Config::kPairTiles) return false;
  constexpr int kRounds = 4;  // of pairs, that balance
  if (batch > 32) return true;
  const int lane = threadIdx.x % 32;
  const int own = lane < batch ? work_tiles_of(row_tiles(lane), true) : 0;
  const u32 limit = kRounds * gridDim.x / Spec::kHeads;  // of each sequence: sums do not overflow
  return __reduce_add_sync(~0u, min(static_cast<u32>(own), limit)) >= limit;
}

// Counts of work tiles of the lanes below this one, and of all lanes, up to kMaxTiles.
struct TileSums {
  u32 before, all;
};

__device__ __forceinline__ TileSums sum_tiles(u32 own) {
  const int lane = threadIdx.x % 32;
  u32 sum = own;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const u32 other = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum = min(sum + other, kMaxTiles);
  }
  const u32 below = __shfl_up_sync(~0u, sum, 1);
  return {lane == 0 ? 0 : below, __shfl_sync(~0u, sum, 31)};
}

// Sorts the sequences by number of row tiles and, but for "per_sequence", counts work tiles; called by all threads of
// the CTA, before the barriers are used. `scratch` is a buffer of the pipeline. Every CTA computes the same order: the
// sort is stable and uses no atomics. It runs once in a launch, so its loops are not unrolled: that would cost more to
// compile than it saves. What takes its time is the loads from global memory: each offset is loaded once, many at a
// time.
template <class Spec, class Config, class Memory, class Scratch, class Offset>
__device__ void build_schedule(Memory& shared, Scratch& scratch, const Offset* offsets, int batch, i64 total_rows) {
  constexpr int kWarps = Config::kThreads / 32;
  constexpr int kCounters = kWarps * kSortKeys;
  static_assert(sizeof(Scratch) >= kCounters * sizeof(u16) + Config::kScheduleSequences &&
                    sizeof(Scratch) >= ceil_div(Config::kScheduleSequences, 32) * sizeof(u32),
                "no room for keys or totals");
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const u32 lanes_below = (1u << lane) - 1;
  const auto row_tiles = [&](int b) {
    return ceil_div(load_sequence<Offset>(offsets, nullptr, b, total_rows).rows, Config::kBlockM);
  };
  u16* all_counts = reinterpret_cast<u16*>(&scratch);
  u16* counts = all_counts + warp * kSortKeys;
  unsigned char* keys = reinterpret_cast<unsigned char*>(all_counts + kCounters);
  const bool paired = pairs_pay<Spec, Config>(batch, row_tiles);
  const int per_warp = ceil_div(ceil_div(batch, kWarps), 32) * 32;
  const int first = warp * per_warp, last = min(first + per_warp, batch);

#pragma unroll 4
  for (int b = thread; b < batch; b += Config::kThreads) {
    keys[b] = static_cast<unsigned char>(min(row_tiles(b), kSortKeys - 1));
  }
#pragma unroll 1
  for (int i = lane; i < kSortKeys; i += 32) counts[i] = 0;
  __syncthreads();
#pragma unroll 1
  for (int base = first; base < last; base += 32) {
    const bool valid = base + lane < last;
    const int key = valid ? keys[base + lane] : kSortKeys;
    const u32 peers = __match_any_sync(~0u, key);
    if (valid && (peers & lanes_below) == 0) counts[key] += __popc(peers);
    __syncwarp();
  }
  __syncthreads();
  // counts[warp][key] becomes the first sorted index of that warp's sequences of that key; longer keys and lower warps
  // come first.
  if (warp == 0) {
    u32 running = 0;
#pragma unroll 1
    for (int group = kSortKeys / 32 - 1; group >= 0; --group) {
      const int key = group * 32 + 31 - lane;  // lane 0 has the longest
      u32 total = 0;
      for (int w = 0; w < kWarps; ++w) total += all_counts[w * kSortKeys + key];
      u32 before = total;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const u32 other = __shfl_up_sync(~0u, before, d);
        if (lane >= d) before += other;
      }
      const u32 group_total = __shfl_sync(~0u, before, 31);
      u32 sorted_index = running + before - total;
      if (key == 0) shared.schedule_sequences = static_cast<int>(sorted_index);  // none follows that has rows
      for (int w = 0; w < kWarps; ++w) {
        const u16 count = all_counts[w * kSortKeys + key];
        all_counts[w * kSortKeys + key] = static_cast<u16>(sorted_index);
        sorted_index += count;
      }
      running += group_total;
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int base = first; base < last; base += 32) {
    const bool valid = base + lane < last;
    const int key = valid ? keys[base + lane] : kSortKeys;
    const u32 peers = __match_any_sync(~0u, key);
    const int sorted_index = valid ? counts[key] + __popc(peers & lanes_below) : 0;
    __syncwarp();
    if (valid) {
      shared.schedule_order[sorted_index] = static_cast<u16>(base + lane);
      if constexpr (!Config::kSchedulePerSequence) {
        const int tiles = key < kSortKeys - 1 ? key : row_tiles(base + lane);
        const int listed = Config::kFirstTileFirst ? max(tiles - 1, 0) : work_tiles_of(tiles, paired);
        const i64 work_tiles = static_cast<i64>(listed) * Spec::kHeads;
        shared.schedule_first[sorted_index] = static_cast<u32>(min(work_tiles, static_cast<i64>(kMaxTiles)));
      }
      if ((peers & lanes_below) == 0) counts[key] += __popc(peers);
    }
    __syncwarp();
  }
  __syncthreads();
  if constexpr (Config::kSchedulePerSequence) return;
  // schedule_first: counts -> exclusive prefix sums, of 32 sorted indices by themselves, then of all.
  u32* totals = reinterpret_cast<u32*>(&scratch);  // of 32 sorted indices; the counters are no longer needed
  const int groups = ceil_div(batch, 32);
#pragma unroll 1
  for (int group = warp; group < groups; group += kWarps) {
    const int sorted_index = group * 32 + lane;
    const TileSums sums = sum_tiles(sorted_index < batch ? shared.schedule_first[sorted_index] : 0);
    if (sorted_index < batch) shared.schedule_first[sorted_index] = sums.before;
    if (lane == 0) totals[group] = sums.all;
  }
  __syncthreads();
  if (warp == 0) {
    u32 running = 0;
#pragma unroll 1
    for (int base = 0; base < groups; base += 32) {
      const TileSums sums = sum_tiles(base + lane < groups ? totals[base + lane] : 0);
      if (base + lane < groups) totals[base + lane] = min(running + sums.before, kMaxTiles);
      running = min(running + sums.all, kMaxTiles);
    }
    if (lane == 0) {
      shared.schedule_first[batch] = running;
      shared.schedule_total = static_cast<int>(running);
      shared.schedule_paired = paired;
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int sorted_index = thread; sorted_index < batch; sorted_index += Config::kThreads) {
    shared.schedule_first[sorted_index] =
        min(shared.schedule_first[sorted_index] + totals[sorted_index / 32], kMaxTiles);
  }
}

// The sorted index of the sequence that a work tile of a sorted list belongs to, which is not below `sorted_index`;
// looks at 32 of them at a time. `firsts`: work tiles before the sequence of each sorted index. By a whole warp.
template <class Batch>
__device__ __forceinline__ int find_sorted_index(const u32* firsts, Batch batch, int sorted_index, u32 work_tile) {
  const int lane = threadIdx.x % 32;
  while (true) {
    const bool starts_after = sorted_index + 1 + lane >= batch || firsts[sorted_index + 1 + lane] > work_tile;
    const u32 after = __ballot_sync(~0u, starts_after);
    const int steps = after == 0 ? 32 : __ffs(after) - 1;
    sorted_index += steps;
    if (steps < 32) return sorted_index;
  }
}

// Walks this CTA's tiles; used by one whole warp, all lanes in step. Two warps that walk at the same time see the
// same tiles.
template <class Spec, class Config, class Params>
class TileScheduler {
 public:
  __device__ __forceinline__ TileScheduler(const Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), batch_(static_cast<int>(params.batch)) {
    if (!sorted()) return;
    if constexpr (Config::kFirstTileFirst) weigh_first_tiles();
    find_work_tile();
  }

  // The next tile that has rows, with its sequence; false when there is none. The arguments hold what the last call
  // gave.
  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if (sorted()) return next_sorted(tile, sequence);
    return next_unsorted(tile, sequence, Config::kSchedulePersistent ? gridDim.x : 0);
  }

 private:
  __device__ __forceinline__ bool sorted() const {
    return Config::kSchedulePersistent && batch_ <= Config::kScheduleSequences;
  }

  // Work tiles in (sequence, head, row tile) order, some of them empty; in a list in (row tile, sequence, head) order,
  // so that CTAs get as many of each row tile. `stride` 0: a CTA has one work tile only.
  __device__ __forceinline__ bool next_unsorted(Tile& tile, Sequence& sequence, u32 stride) {
    const int tiles = ceil_div(params_.max_query_rows, Config::kBlockM);
    const i64 total = static_cast<i64>(tiles) * Spec::kHeads * batch_;
#pragma unroll 1
    while (true) {
      if (round_ > 0 && stride == 0) return false;
      const i64 work_tile = (Config::kSplit ? cluster_index() : blockIdx.x) + static_cast<i64>(round_++) * stride;
      if (work_tile >= total) return false;
      const i64 pairs = static_cast<i64>(Spec::kHeads) * batch_;
      i64 pair;
      if (Config::kFirstTileFirst && work_tile < pairs) {
        pair = work_tile;
        tile.row_tile = 0;
      } else {
        const i64 rest = Config::kFirstTileFirst ? work_tile - pairs : work_tile;
        const int others = Config::kFirstTileFirst ? tiles - 1 : tiles;
        const i64 index = stride == 0 ? rest % others : rest / pairs;
        pair = stride == 0 ? rest / others : rest - index * pairs;
        tile.row_tile = tiles - 1 - static_cast<int>(index);
      }
      tile.head = static_cast<int>(pair % Spec::kHeads);
      sequence = sequence_of<Spec, Config>(params_, static_cast<int>(pair / Spec::kHeads));
      if constexpr (Spec::kRabHeads > 0) tile.sequence = static_cast<int>(pair / Spec::kHeads);
      if (tile.row_tile * Config::kBlockM < sequence.rows - sequence.query_begin) return true;
    }
  }

  __device__ __forceinline__ bool next_sorted(Tile& tile, Sequence& sequence) {
    if (second_half_ >= 0) {
      tile.row_tile = second_half_;
      second_half_ = -1;
      return true;
    }
    if (within_ < 0) return false;
    sequence = clamp_words(words_, params_.total_rows);
    if constexpr (Spec::kRabHeads > 0) tile.sequence = index_;
    const int tiles = ceil_div(sequence.rows, Config::kBlockM);
    if constexpr (Config::kFirstTileFirst) {
      const int others = tiles - 1;
      tile.head = at_first_tile_ ? within_ : within_ / others;
      tile.row_tile = at_first_tile_ ? 0 : others - (within_ - tile.head * others);
      find_work_tile();
      return true;
    }
    if (!Config::kPairTiles || shared_.schedule_paired) {
      const int work_tiles = work_tiles_of(tiles, Config::kPairTiles);
      tile.head = within_ / work_tiles;
      const int position = within_ - tile.head * work_tiles;
      tile.row_tile = tiles - 1 - position;
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
    if constexpr (Config::kFirstTileFirst) {
      find_work_tile_of_unequal();
      return;
    }
    const int across = round_ % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    const i64 wide = static_cast<i64>(round_++) * gridDim.x + across;
    if (wide >= shared_.schedule_total) {
      within_ = -1;
      return;
    }
    find_listed(static_cast<u32>(wide));
  }

  // Sorted indices only grow from work tile to work tile.
  __device__ __forceinline__ void find_listed(u32 work_tile) {
    sorted_index_ = find_sorted_index(shared_.schedule_first, batch_, sorted_index_, work_tile);
    within_ = static_cast<int>(work_tile - shared_.schedule_first[sorted_index_]);
    load_sequence_of(sorted_index_);
  }

  __device__ __forceinline__ void load_sequence_of(int sorted_index) {
    index_ = shared_.schedule_order[sorted_index];
    words_ = load_words(params_.seq_offsets, num_targets_of<Spec>(params_), index_);
  }

  // With kFirstTileFirst the first tiles of all sequences and heads are dealt out first, and the list has the others.
  // A first tile takes as long as several others, so a CTA that has one leaves out as many rounds of them. Each lane
  // knows that number of the sequence of its sorted index.
  __device__ __forceinline__ void weigh_first_tiles() {
    const int lane = threadIdx.x % 32;
    if (lane >= shared_.schedule_sequences) return;
    const Sequence sequence = sequence_of<Spec, Config>(params_, shared_.schedule_order[lane]);
    const int last = sequence.rows - 1;
    int first_begin, first_end, begin, end;
    mask_columns(0, min(Config::kBlockM - 1, last), sequence.rows, sequence.targets, first_begin, first_end);
    mask_columns(max(last - Config::kBlockM, 0), last, sequence.rows, sequence.targets, begin, end);
    constexpr int kTileColumns = 512;  // what a tile takes once, as columns
    lane_rounds_ = (first_end - first_begin + kTileColumns) / max(end - begin + kTileColumns, 1);
  }

  __device__ __forceinline__ void find_work_tile_of_unequal() {
    const u32 firsts = static_cast<u32>(shared_.schedule_sequences) * Spec::kHeads;
    const bool weighed = shared_.schedule_sequences <= 32 && firsts <= gridDim.x;
    i64 first = blockIdx.x + static_cast<i64>(round_) * gridDim.x, listed = first - firsts;
    at_first_tile_ = first < firsts && (!weighed || round_ == 0);
    if (!weighed) {
      ++round_;
    } else if (at_first_tile_) {
      const int rounds = max(__shfl_sync(~0u, lane_rounds_, static_cast<int>(first) / Spec::kHeads), 1);
      for (; round_ < rounds; ++round_) dealt_ += gridDim.x - blocks_at_first_tiles();
    } else {
      const u32 absent = blocks_at_first_tiles();
      listed = dealt_ + static_cast<i64>(blockIdx.x) - absent;
      dealt_ += gridDim.x - absent;
      ++round_;
    }
    if (at_first_tile_) {
      within_ = static_cast<int>(first) % Spec::kHeads;
      load_sequence_of(static_cast<int>(first) / Spec::kHeads);
    } else if (listed >= shared_.schedule_total) {
      within_ = -1;
    } else {
      find_listed(static_cast<u32>(listed));
    }
  }

  // In the current round.
  __device__ __forceinline__ u32 blocks_at_first_tiles() const {
    const bool present = threadIdx.x % 32 < shared_.schedule_sequences;
    return __popc(__ballot_sync(~0u, present && max(lane_rounds_, 1) > round_)) * Spec::kHeads;
  }

  const Shared<Config>& shared_;
  const Params& params_;
  const int batch_;
  int round_ = 0;
  int lane_rounds_ = 0;         // of the others, that the first tile of the sequence of this lane's sorted index takes
  i64 dealt_ = 0;               // of the others, in earlier rounds
  bool at_first_tile_ = false;  // the work tile is the first tile of head `within_`
  int second_half_ = -1;        // row tile still to do of the current pair
  // The work tile after the current one, in a sorted schedule:
  int sorted_index_ = 0;  // of its sequence
  int within_ = -1;       // its number within the sequence; < 0: there is none
  int index_ = 0;         // the sequence's
  decltype(load_words(Params().seq_offsets, Params().seq_offsets, 0)) words_ = {};
};

}  // namespace sm90
