// Attention backward on Hopper with attn_func: bounds of the intervals of each Q tile's rows. Any row may see any
// column, so a tile of columns has to ask all Q tiles whether they see it. By these bounds each lane of its producer
// asks one, and reads no rows.
#pragma once
#include "attention/sequence.cuh"
#include "common/regions.cuh"

namespace sm90::backward {

// Bounds of the Q tile from `row0` on, in the workspace: kIntervals for each head of attn_func. No two Q tiles have the
// same place: where a sequence ends within a Q tile, the next one is one further on.
template <class Spec, class Config, class Params>
__device__ __forceinline__ IntervalBounds* bounds_of(const Params& params, const Sequence& sequence, int index,
                                                     int group, int row0) {
  const i64 place = sequence.start / Config::kBlockN + index + row0 / Config::kBlockN;
  return reinterpret_cast<IntervalBounds*>(params.interval_bounds) +
         (place * Spec::kAttnFuncHeads + group) * kIntervals;
}

// The same, where sequence.bounds are those of its row 0 for the head at hand.
template <class Config>
__device__ __forceinline__ const IntervalBounds* q_tile_bounds(const Sequence& sequence, int row0) {
  return sequence.bounds + row0 / Config::kBlockN * (Spec::kAttnFuncHeads * kIntervals);
}

// The same of groups of Q tiles, so that a tile of columns need not ask all Q tiles of a long sequence.
constexpr int kQTilesOfGroup = 8;

template <class Spec, class Config, class Params>
__device__ __forceinline__ IntervalBounds* group_bounds_of(const Params& params, const Sequence& sequence, int index,
                                                           int group, int row0) {
  constexpr int kRows = kQTilesOfGroup * Config::kBlockN;
  const i64 place = sequence.start / kRows + index + row0 / kRows;
  return reinterpret_cast<IntervalBounds*>(params.interval_groups) +
         (place * Spec::kAttnFuncHeads + group) * kIntervals;
}

// Finds where a tile of columns may see Q tiles, 32 at a time, by the bounds of their groups. One whole warp.
template <class Config>
class SeenQTiles {
 public:
  // Whether it may see some of the 32 Q tiles from `row0` on, or has one that sees nothing, which counts to the tile of
  // its own rows. Called for row 0 first, and then in order.
  __device__ __forceinline__ bool some(const Sequence& sequence, int column0, int row0) {
    constexpr int kRows = kQTilesOfGroup * Config::kBlockN, kAsked = 32 * kRows, kTogether = 32 / kQTilesOfGroup;
    if (row0 % kAsked == 0) {
      const int own = row0 + static_cast<int>(threadIdx.x) % 32 * kRows, column_end = column0 + Config::kBlockM;
      bool seen = own < column_end && column0 < own + kRows;
      if (own < sequence.rows) {
        const IntervalBounds* const bounds = sequence.groups + own / kRows * (Spec::kAttnFuncHeads * kIntervals);
#pragma unroll 1
        for (int i = 0; i < kIntervals; ++i)
          seen = seen || (bounds[i].first_begin < column_end && column0 < bounds[i].last_end);
      }
      seen_ = __ballot_sync(~0u, seen);
    }
    return seen_ >> row0 % kAsked / kRows & ((1u << kTogether) - 1);
  }

 private:
  u32 seen_ = 0;  // bit i: the i-th group of those asked last
};

}  // namespace sm90::backward

// A CTA has a group of Q tiles of a sequence and head of attn_func, a warp each. Comes before attention_gradients() of
// the template.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace sm90::backward;
  constexpr int kRows = kQTilesOfGroup * Config::kBlockN;
  __shared__ IntervalBounds of_tiles[kQTilesOfGroup];
  const u32 groups = ceil_div(params.max_query_rows, kRows), place = blockIdx.x / groups;
  const int head = static_cast<int>(place % Spec::kAttnFuncHeads);
  const int index = static_cast<int>(place / Spec::kAttnFuncHeads);
  const Sequence sequence = sequence_of<Spec, Config>(params, index);
  const int group_row0 = static_cast<int>(blockIdx.x % groups) * kRows;
  if (group_row0 >= sequence.rows) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row0 = group_row0 + warp * Config::kBlockN, row_end = min(row0 + Config::kBlockN, sequence.rows);
  const RowIntervals intervals = intervals_of<Spec>(params, sequence, head * (Spec::kHeads / Spec::kAttnFuncHeads));
  IntervalBounds* const bounds = bounds_of<Spec, Config>(params, sequence, index, head, row0);
  IntervalBounds* const of_group = group_bounds_of<Spec, Config>(params, sequence, index, head, group_row0);
  for (int i = 0; i < kIntervals; ++i) {
    IntervalBounds found;
    for (int row = row0 + lane; row < row_end; row += 32)
      found.add(row_interval(row, 2 * i, sequence.rows, intervals));
    found.reduce();
    if (lane == 0) {
      of_tiles[warp] = found;
      if (row0 < sequence.rows) bounds[i] = found;
    }
    __syncthreads();
    if (warp == 0) {
      IntervalBounds all;
      if (lane < kQTilesOfGroup) all = of_tiles[lane];
      all.reduce();
      if (lane == 0) of_group[i] = all;
    }
    __syncthreads();
  }
}
