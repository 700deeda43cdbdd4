// Attention forward on Hopper: a tile whose columns are split over a cluster of CTAs. Each leaves its partial of
// the sums in its shared memory, in fp32; then each adds up and stores some of the rows.
#pragma once
#include "attention/operands/factors.cuh"
#include "attention/sm90_forward/shared.cuh"
#include "common/fragment_store.cuh"
#include "common/regions.cuh"
#include "common/schedule/cluster_partials.cuh"

namespace sm90 {

// Where k and v were.
template <class Config>
__device__ __forceinline__ u32 partials_address(const Shared<Config>& shared) {
  return shared_address(shared.k);
}

// Adds up the partials of the cluster's tile and stores them. By all threads of all its CTAs.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void add_partials(const Shared<Config>& shared, const Params& params) {
  constexpr int kPieces = Spec::kHiddenDim / 4;
  static_assert(Config::kBlockM * kPartialRowBytes<Spec::kHiddenDim> <= sizeof(shared.k) + sizeof(shared.v),
                "the host side accepts tiles whose partials fit where k and v were");
  const TileInfo& tile = shared.tile[0];
  if (tile.head < 0) return;
  const int row_end = min(tile.row0 + Config::kBlockM, tile.rows), pieces = (row_end - tile.row0) * kPieces;
  const u32 partials = partials_address(shared), blocks = cluster_blocks();
  // The sums of CTAs without columns are not worth reading: of a causal mask, those of most CTAs at the first rows.
  int begin, end;
  mask_columns(tile.row0, row_end - 1, tile.rows, tile.targets, begin, end);
  const auto splits = static_cast<u32>(splits_of<Config>(first_kv_column<Config>(begin), end));
  for (int i = cluster_rank() * Config::kThreads + threadIdx.x; i < pieces; i += blocks * Config::kThreads) {
    const int row = i / kPieces, column = i % kPieces * 4;
    const u32 address = partials + row * kPartialRowBytes<Spec::kHiddenDim> + column * 4;
    const float4 sum = add_partials_at(address, splits);
    const float factor = factor_of(row_factors<Spec>(params, tile.start, tile.rows), tile.row0 + row);
    const u32 low = pack_pair<Spec::kDtypeBf16>(sum.x * factor, sum.y * factor);
    const u32 high = pack_pair<Spec::kDtypeBf16>(sum.z * factor, sum.w * factor);
    const bool sees = tile.row0 + row >= 0;  // else a row of q before the sequence
    u16* out = params.out + (tile.start + tile.row0 + row) * params.out_row_stride + tile.head * params.out_head_stride;
    *reinterpret_cast<uint2*>(out + column) = make_uint2(sees ? low : 0, sees ? high : 0);
  }
}

}  // namespace sm90
