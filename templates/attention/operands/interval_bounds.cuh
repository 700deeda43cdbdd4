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

}  // namespace sm90::backward

// A warp has a Q tile of a sequence and head of attn_func. Comes before attention_gradients() of the template.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  constexpr int kTiles = 4;  // of a CTA, as the grid has it
  const u32 chunks = ceil_div(params.max_query_rows, kTiles * Config::kBlockN), place = blockIdx.x / chunks;
  const int group = static_cast<int>(place % Spec::kAttnFuncHeads);
  const int index = static_cast<int>(place / Spec::kAttnFuncHeads);
  const Sequence sequence = sequence_of<Spec, Config>(params, index);
  const int tile = static_cast<int>(blockIdx.x % chunks) * kTiles + static_cast<int>(threadIdx.x) / 32;
  const int row0 = tile * Config::kBlockN;
  if (row0 >= sequence.rows) return;
  const RowIntervals intervals = intervals_of<Spec>(params, sequence, group * (Spec::kHeads / Spec::kAttnFuncHeads));
  IntervalBounds* const bounds = sm90::backward::bounds_of<Spec, Config>(params, sequence, index, group, row0);
  const int row_end = min(row0 + Config::kBlockN, sequence.rows);
  for (int i = 0; i < kIntervals; ++i) {
    IntervalBounds found;
    for (int row = row0 + static_cast<int>(threadIdx.x) % 32; row < row_end; row += 32)
      found.add(row_interval(row, 2 * i, sequence.rows, intervals));
    found.reduce();
    if (threadIdx.x % 32 == 0) bounds[i] = found;
  }
}
