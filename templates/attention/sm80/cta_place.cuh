// hstu_attention on Ampere and Ada: which part of the work a CTA has.
//
// "grid": CTAs of a tile of every (sequence, head) follow one another, and each has one tile. "per_sequence": those of
// a sequence follow one another, one for each head and role, since they read the same rows; each has all tiles.
#pragma once
#include "common/jagged.cuh"

namespace sm80 {

// The sequence at `place` of an order of the batch that begins with long ones, so that none is left to few CTAs at the
// end. Nobody sorts the batch: of each 32 neighbours the longest come first, then the second longest, and so on. A warp
// finds its own by their lengths, in units of 16 rows, of which each lane has one. Offsets that make no sense are in
// some order, too.
template <class Params>
__device__ __forceinline__ int longest_first(const Params& params, u32 place) {
  const auto batch = static_cast<u32>(params.batch);
  const u32 groups = (batch + 31) / 32;
  const u32 all = batch - 32 * (groups - 1);  // places that every group has; the last one has no more
  u32 rank = place / groups, group = place % groups;
  if (rank >= all) {
    const u32 rest = place - all * groups;
    rank = all + rest / (groups - 1);
    group = rest % (groups - 1);
  }
  const u32 lane = threadIdx.x % 32, index = group * 32 + lane;
  u32 length = 0;  // and one more, where there is a sequence
  if (index < batch) {
    const decltype(params.seq_offsets) no_targets = nullptr;
    const int rows = load_sequence(params.seq_offsets, no_targets, index, params.total_rows).rows;
    length = (static_cast<u32>(rows) + 15) / 16 + 1;
  }

  // From the highest bit down, only lanes are left that agree with the one of this rank.
  u32 left = ~0u;
#pragma unroll 1
  for (int bit = 31 - __clz(__reduce_or_sync(~0u, length)); bit >= 0; --bit) {
    const u32 longer = __ballot_sync(~0u, length >> bit & 1) & left;
    const auto count = static_cast<u32>(__popc(longer));
    left = rank < count ? longer : left & ~longer;
    if (rank >= count) rank -= count;
  }
  const u32 below = left & ((1u << lane) - 1);
  const u32 found = __ballot_sync(~0u, (left >> lane & 1) != 0 && static_cast<u32>(__popc(below)) == rank);
  return static_cast<int>(group) * 32 + __ffs(found) - 1;
}

// (Sequence, head)s of a batch in which the order is worth what it costs, a tenth of the instructions: on an H200
// 16,384 gain a tenth and more, 38,000 lose as much.
constexpr u32 kMostOrdered = 24576;

struct CtaPlace {
  int sequence, head;
  int rest;  // the tile of "grid", counted as the kernel says; the role of "per_sequence"
};

template <class Spec, class Config, int kRoles, class Params>
__device__ __forceinline__ CtaPlace cta_place(const Params& params) {
  if constexpr (Config::kSchedulePerSequence) {
    const u32 pair = blockIdx.x / kRoles, place = pair / Spec::kHeads;
    // Sequences of a tile or two take about as long as one another, and of many no CTA takes long.
    const bool in_order = params.max_query_rows <= 2 * Config::kBlockM || gridDim.x > kRoles * kMostOrdered;
    return {in_order ? static_cast<int>(place) : longest_first(params, place), static_cast<int>(pair % Spec::kHeads),
            static_cast<int>(blockIdx.x % kRoles)};
  } else {
    const int block = static_cast<int>(blockIdx.x);
    const int pairs = static_cast<int>(params.batch) * Spec::kHeads, pair = block % pairs;
    return {pair / Spec::kHeads, pair % Spec::kHeads, block / pairs};
  }
}

// Calls visit(row) for the first row of each tile of a sequence of so many rows. All of the CTA's threads take part,
// and shared memory is free for each. A sequence longer than the launch's limit, which "grid" leaves there, is worked
// off. Counted down, so that the number of tiles takes no register: some kernels have none to spare.
template <int kBlockM, class Visitor>
__device__ __forceinline__ void for_each_tile(int rows, Visitor&& visit) {
  for (int tile = ceil_div(rows, kBlockM) - 1; tile >= 0; --tile) {
    visit(tile * kBlockM);
    __syncthreads();
  }
}

}  // namespace sm80
