// Attention backward on Hopper in two passes, with kPackSequences: tiles of consecutive sequences (see
// attention/schedule/packed_rows.cuh).
#pragma once
#include "attention/sm90_backward/shared.cuh"
#include "attention/schedule/packed_rows.cuh"
#include "common/regions.cuh"

namespace sm90::backward {

template <class Config>
using PackedShared = PackedSharedOf<Shared<Config>, Config, Config::kStationaryStages>;
template <class Config>
using KernelShared = typename KernelSharedOf<Shared<Config>, Config, Config::kStationaryStages>::Type;

// Before the sums of a moving tile, and when S and dP are done with it: what is not finite is left out where the tile
// has rows of several sequences. By a warpgroup.
template <bool kFirst, bool kSecond, class Spec, class Config>
__device__ __forceinline__ void clean_moving(Shared<Config>& shared, PackedTile<Config>& tile, int stage) {
  if (!tile.mixed) return;
  constexpr bool kBf16 = Spec::kDtypeBf16;
  constexpr int kRows = Config::kBlockN;
  const int thread = threadIdx.x % kWarpgroup;
  bool found = false;
  if constexpr (kFirst) {
    found |= replace_not_finite<kBf16, Config::kQkTiles, kRows>(shared.moving_first[stage], kRows, thread, kWarpgroup);
  }
  if constexpr (kSecond) {
    found |= replace_not_finite<kBf16, Config::kPvTiles, kRows>(shared.moving_second[stage], kRows, thread, kWarpgroup);
  }
  if (found) tile.not_finite = 1;
  fence_proxy_async();
  named_barrier_sync(kWithinWarpgroup, kWarpgroup);
}

// Sums of a row of the tile that has to do with something that is not finite are NaN in its column. `row`: the thread's
// first row within the tile. `moving`: the tensor that was summed up, from its first row and head on.
template <Role kRole, class Spec, class Config, int kCount>
__device__ __forceinline__ void restore_moving(const PackedTile<Config>& tile, int row0, int row, const u16* moving,
                                               i64 row_stride, float (&sums)[kCount]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const PackedRow of = tile.rows[row + 8 * half];
    const int own = row0 + row + 8 * half - of.start;
    const auto sees = [&](int other) {
      return kRole == Role::kRows ? mask_valid(own, other, of.rows, of.targets)
                                  : mask_valid(other, own, of.rows, of.targets);
    };
    restore_not_finite<Spec::kDtypeBf16>(moving + of.start * row_stride, row_stride, of.rows, 2 * half, sees, sums);
  }
}

}  // namespace sm90::backward
