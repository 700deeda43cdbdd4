// hstu_attention forward on Hopper, with kPackSequences: what a consumer does otherwise.
#pragma once
#include "attention/sm90_forward/shared.cuh"
#include "attention/schedule/packed_rows.cuh"
#include "common/regions.cuh"

namespace sm90 {

template <class Config>
using PackedShared = PackedSharedOf<Shared<Config>, Config, Config::kQueryStages>;
template <class Config>
using KernelShared = typename KernelSharedOf<Shared<Config>, Config, Config::kQueryStages>::Type;

// Before a V tile is multiplied by the weights of all rows of the tile: its rows from `rows` on, which no row sees, are
// zeroed, and what is not finite is left out where the tile has rows of several sequences. By a warpgroup.
template <class Spec, class Config>
__device__ __forceinline__ void clean_values(Shared<Config>& shared, PackedTile<Config>& tile, int stage, int rows) {
  const bool mixed = tile.mixed;
  if (!mixed && rows >= Config::kBlockN) return;
  const int thread = threadIdx.x % kWarpgroup;
  zero_rows(shared, stage, rows, thread, kWarpgroup);
  if (mixed && replace_not_finite<Spec::kDtypeBf16, Config::kPvTiles, Config::kBlockN>(shared.v[stage], rows, thread,
                                                                                       kWarpgroup)) {
    tile.not_finite = 1;
  }
  fence_proxy_async();
  named_barrier_sync(kWithinWarpgroup, kWarpgroup);
}

// A row that sees a value that is not finite is NaN in its column. `row` is the thread's first one within the tile,
// `row0` that of the tile.
template <class Spec, class Config, class Params, int kCount>
__device__ __forceinline__ void restore_values(const Params& params, const PackedTile<Config>& tile, int row0, int row,
                                               int head, float (&sums)[kCount]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const PackedRow of = tile.rows[row + 8 * half];
    const int own = row0 + row + 8 * half - of.start;
    const auto sees = [&](int column) { return mask_valid(own, column, of.rows, of.targets); };
    restore_not_finite<Spec::kDtypeBf16>(params.v + of.start * params.v_row_stride + head * params.v_head_stride,
                                         params.v_row_stride, of.rows, 2 * half, sees, sums);
  }
}

}  // namespace sm90
