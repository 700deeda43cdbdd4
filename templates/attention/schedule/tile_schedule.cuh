// Attention: the list of work tiles that persistent CTAs share, as each of them keeps it in shared memory.
//
// The list consists of entries, each with the number of work tiles before it. Of a batch that fits, an entry is a
// sequence, and sequences are sorted by length, longest first. Of a larger one, an entry is a group of neighbours in
// the batch, and a warp looks into it: see find_in_group. Either way work tiles of one sequence are neighbours in the
// list, so that CTAs running at the same time share its rows in L2, and none is empty.
// Under a causal mask row tile r costs about r + 1 KV tiles, so a work tile is a pair of row tiles (r, last - r): all
// work tiles of a sequence cost the same and dealing them out round by round, in alternating direction, balances the
// CTAs. Where that is not enough, work tiles are single tiles: see pairs_pay.
#pragma once
#include "attention/sequence.cuh"

namespace sm90 {

[[maybe_unused]] constexpr int kSortKeys = 64;  // sequences of at least this many row tiles count as equally long
// Counts of work tiles end here. No tensors that fit a GPU have so many, but offsets that overlap may ask for them, and
// a count that wraps would send a CTA to heads and rows that are not there.
[[maybe_unused]] constexpr u32 kMaxTiles = 0x7fffffff;

__device__ __forceinline__ int work_tiles_of(int row_tiles, bool paired) {
  return paired ? (row_tiles + 1) / 2 : row_tiles;
}

// Work tiles of all heads of a sequence.
template <class Spec>
__device__ __forceinline__ u32 work_tiles_of_heads(int row_tiles, bool paired) {
  const i64 work_tiles = static_cast<i64>(work_tiles_of(row_tiles, paired)) * Spec::kHeads;
  return static_cast<u32>(min(work_tiles, static_cast<i64>(kMaxTiles)));
}

// Whether a work tile is a pair of row tiles. Where a CTA's share is that of few of the longest pairs, they do not
// share out evenly: one sequence of ten thousands of rows among tiny ones may have one and a half for each CTA. Then
// single tiles, the longest of all heads first, leave less of the grid idle. A CTA has a share of each of kLists lists.
// Called by all threads; the same for all CTAs.
template <class Spec, class Config, int kLists, class Scratch, class RowTiles>
__device__ __forceinline__ bool pairs_pay(Scratch& scratch, int batch, const RowTiles& row_tiles) {
  if constexpr (!Config::kPairTiles) return false;
  constexpr int kWarps = Config::kThreads / 32;
  struct Load {
    float kv_tiles;
    int longest;  // in row tiles
  };
  Load* loads = reinterpret_cast<Load*>(&scratch);
  static_assert(sizeof(Load) <= kSortKeys * sizeof(u16), "a sort's keys lie behind its counters, where loads are");
  const auto kv_tiles_of = [](int tiles) { return 0.5f * static_cast<float>(tiles) * static_cast<float>(tiles + 1); };
  Load load = {};
#pragma unroll 4
  for (int b = threadIdx.x; b < batch; b += Config::kThreads) {
    const int tiles = row_tiles(b);
    load.kv_tiles += kv_tiles_of(tiles);
    load.longest = max(load.longest, tiles);
  }
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    load.kv_tiles += __shfl_xor_sync(~0u, load.kv_tiles, d);
    load.longest = max(load.longest, __shfl_xor_sync(~0u, load.longest, d));
  }
  if (threadIdx.x % 32 == 0) loads[threadIdx.x / 32] = load;
  __syncthreads();
  load = {};
#pragma unroll 1
  for (int warp = 0; warp < kWarps; ++warp) {
    load.kv_tiles += loads[warp].kv_tiles;
    load.longest = max(load.longest, loads[warp].longest);
  }
  __syncthreads();  // before the scratch has something else
  const float shares = batch > 32 ? 3.0f : 4.0f;  // of many sequences, shorter ones even out the rest
  const float of_the_longest = static_cast<float>(gridDim.x) * static_cast<float>(load.longest + 1);
  return kLists * Spec::kHeads * load.kv_tiles >= shares * of_the_longest;
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

// Whether an entry is a sequence.
template <class Config, class Batch>
__device__ __forceinline__ bool is_sorted(Batch batch) {
  return batch <= Config::kScheduleSequences;
}

// Sequences of an entry where they are not sorted: as few times 32 as leave no more entries than there is room for.
template <class Config>
__device__ __forceinline__ int group_size(int batch) {
  constexpr u32 kRoom = Config::kScheduleSequences * 32;
  return static_cast<int>(ceil_div(static_cast<u32>(batch), kRoom)) * 32;
}

template <class Config>
__device__ __forceinline__ int entries_of(int batch) {
  return is_sorted<Config>(batch) ? batch : ceil_div(batch, group_size<Config>(batch));
}

// Sorts the sequences by number of row tiles and, but for "per_sequence", counts work tiles. Every CTA computes the
// same order: the sort is stable and uses no atomics. What takes its time is the loads of offsets from global memory:
// each is loaded once, many at a time. Returns what pairs_pay says, which looks at the same offsets.
template <class Spec, class Config, int kLists, class Memory, class Scratch, class RowTiles>
__device__ __forceinline__ bool sort_sequences(Memory& shared, Scratch& scratch, int batch, const RowTiles& row_tiles) {
  constexpr int kWarps = Config::kThreads / 32;
  constexpr int kCounters = kWarps * kSortKeys;
  static_assert(sizeof(Scratch) >= kCounters * sizeof(u16) + Config::kScheduleSequences &&
                    sizeof(Scratch) >= ceil_div(Config::kScheduleSequences, 32) * sizeof(u32),
                "no room for keys or totals");
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const u32 lanes_below = (1u << lane) - 1;
  u16* all_counts = reinterpret_cast<u16*>(&scratch);
  u16* counts = all_counts + warp * kSortKeys;
  unsigned char* keys = reinterpret_cast<unsigned char*>(all_counts + kCounters);
  const int per_warp = ceil_div(ceil_div(batch, kWarps), 32) * 32;
  const int first = warp * per_warp, last = min(first + per_warp, batch);

  const auto row_tiles_with_key = [&](int b) {
    const int tiles = row_tiles(b);
    keys[b] = static_cast<unsigned char>(min(tiles, kSortKeys - 1));
    return tiles;
  };
  bool paired = false;
  if constexpr (Config::kPairTiles) {
    paired = pairs_pay<Spec, Config, kLists>(scratch, batch, row_tiles_with_key);
  } else {
#pragma unroll 4
    for (int b = thread; b < batch; b += Config::kThreads) row_tiles_with_key(b);
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
        const int listed = Config::kLongTileFirst ? max(tiles - 1, 0) : tiles;
        shared.schedule_first[sorted_index] = work_tiles_of_heads<Spec>(listed, paired);
      }
      if ((peers & lanes_below) == 0) counts[key] += __popc(peers);
    }
    __syncwarp();
  }
  __syncthreads();
  return paired;
}

// The same for a batch that does not fit, in its own order: counts work tiles of each group.
template <class Spec, class Config, class Memory, class RowTiles>
__device__ __forceinline__ void count_groups(Memory& shared, int batch, bool paired, const RowTiles& row_tiles) {
  constexpr int kWarps = Config::kThreads / 32;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr int kTogether = 4;  // groups, whose loads are in flight at the same time
  const int groups = entries_of<Config>(batch), size = group_size<Config>(batch);
#pragma unroll 1
  for (int first = warp; first < groups; first += kTogether * kWarps) {
    u32 counts[kTogether] = {};
#pragma unroll 1
    for (int i = lane; i < size; i += 32) {
      u32 own[kTogether];
#pragma unroll
      for (int g = 0; g < kTogether; ++g) {
        const int b = (first + g * kWarps) * size + i;
        own[g] = b < batch ? work_tiles_of_heads<Spec>(row_tiles(b), paired) : 0;
      }
#pragma unroll
      for (int g = 0; g < kTogether; ++g) counts[g] = min(counts[g] + sum_tiles(own[g]).all, kMaxTiles);
    }
#pragma unroll
    for (int g = 0; g < kTogether; ++g) {
      if (lane == 0 && first + g * kWarps < groups) shared.schedule_first[first + g * kWarps] = counts[g];
    }
  }
  __syncthreads();
}

// schedule_first: counts -> exclusive prefix sums, of 32 entries by themselves, then of all.
template <class Config, class Memory, class Scratch>
__device__ __forceinline__ void add_up_entries(Memory& shared, Scratch& scratch, int entries) {
  constexpr int kWarps = Config::kThreads / 32;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  u32* totals = reinterpret_cast<u32*>(&scratch);  // of 32 entries; a sort's counters are no longer needed
  const int groups = ceil_div(entries, 32);
#pragma unroll 1
  for (int group = warp; group < groups; group += kWarps) {
    const int entry = group * 32 + lane;
    const TileSums sums = sum_tiles(entry < entries ? shared.schedule_first[entry] : 0);
    if (entry < entries) shared.schedule_first[entry] = sums.before;
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
      shared.schedule_first[entries] = running;
      shared.schedule_total = static_cast<int>(running);
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int entry = thread; entry < entries; entry += Config::kThreads) {
    shared.schedule_first[entry] = min(shared.schedule_first[entry] + totals[entry / 32], kMaxTiles);
  }
}

// Called by all threads of the CTA, before the barriers are used. `scratch` is a buffer of the pipeline. It runs once
// in a launch: most of its loops are not unrolled, which would cost more to compile than it saves, and it is no part of
// the kernel's function, whose registers have no room for it.
template <class Spec, class Config, int kLists = 1, class Memory, class Scratch, class Offset>
__device__ __noinline__ void build_schedule(Memory& shared, Scratch& scratch, const Offset* offsets, int batch,
                                            i64 total_rows) {
  const auto row_tiles = [&](int b) {
    return ceil_div(load_sequence<Offset>(offsets, nullptr, b, total_rows).rows, Config::kBlockM);
  };
  bool paired;
  if (Config::kSchedulePerSequence || is_sorted<Config>(batch)) {
    paired = sort_sequences<Spec, Config, kLists>(shared, scratch, batch, row_tiles);
  } else {
    paired = pairs_pay<Spec, Config, kLists>(scratch, batch, row_tiles);
    count_groups<Spec, Config>(shared, batch, paired, row_tiles);
  }
  if constexpr (Config::kSchedulePerSequence) return;
  if (threadIdx.x == 0) shared.schedule_paired = paired;
  add_up_entries<Config>(shared, scratch, entries_of<Config>(batch));
}

// The entry of a work tile, which is not below `entry`; looks at 32 of them at a time. `firsts`: work tiles before each
// entry. By a whole warp.
__device__ __forceinline__ int find_entry(const u32* firsts, int entries, int entry, u32 work_tile) {
  const int lane = threadIdx.x % 32;
  while (true) {
    const bool starts_after = entry + 1 + lane >= entries || firsts[entry + 1 + lane] > work_tile;
    const u32 after = __ballot_sync(~0u, starts_after);
    const int steps = after == 0 ? 32 : __ffs(after) - 1;
    entry += steps;
    if (steps < 32) return entry;
  }
}

// Where a work tile lies in a batch.
template <class Offset>
struct Place {
  int sequence;
  int within;  // its number among the sequence's work tiles
  SequenceWords<Offset> words;
};

// The words of a lane's sequence of a group, the sequences from `first` on; of none beyond the batch.
template <class Spec, class Params>
__device__ __forceinline__ auto load_group_words(const Params& params, int first) {
  const int b = first + static_cast<int>(threadIdx.x % 32);
  decltype(load_words(params.seq_offsets, num_targets_of<Spec>(params), 0)) words = {};
  if (b < params.batch) words = load_words(params.seq_offsets, num_targets_of<Spec>(params), b);
  return words;
}

// Which sequence of group `group` has its work tile `within`; `words`: load_group_words of its first 32. By a whole
// warp, each lane of which looks at a sequence.
template <class Spec, class Config, class Params, class Offset>
__device__ __forceinline__ Place<Offset> find_in_group(const Params& params, int group, int within, bool paired,
                                                       SequenceWords<Offset> words) {
  const int size = group_size<Config>(static_cast<int>(params.batch)), end = (group + 1) * size;
  int first = group * size;
  TileSums sums;
  while (true) {
    const int rows = clamp_words(words, params.total_rows).rows;
    sums = sum_tiles(work_tiles_of_heads<Spec>(ceil_div(rows, Config::kBlockM), paired));
    if (static_cast<u32>(within) < sums.all || first + 32 >= end) break;
    within -= static_cast<int>(sums.all);
    first += 32;
    words = load_group_words<Spec>(params, first);
  }
  const int lane = 31 - __clz(__ballot_sync(~0u, sums.before <= static_cast<u32>(within)));
  return {first + lane,
          within - static_cast<int>(__shfl_sync(~0u, sums.before, lane)),
          {__shfl_sync(~0u, words.begin, lane), __shfl_sync(~0u, words.end, lane),
#ifdef kNumContexts
           __shfl_sync(~0u, words.targets, lane), __shfl_sync(~0u, words.contexts, lane)}};
#else
           __shfl_sync(~0u, words.targets, lane)}};
#endif
}

}  // namespace sm90
