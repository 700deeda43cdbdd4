// Attention backward on Hopper, dS computed once: the "per_sequence" schedule, of which a CTA takes all KV tiles of
// one (sequence, head), from the last one to the first, and where the sums of dq are between two tiles.
//
// A Q tile has its partials from the same threads then, each element from one of them: nobody waits for anybody,
// and nothing is cleared. There is room in shared memory for the sums of kSmemAccumTiles Q tiles, from the
// kFirstSmemAccumTile-th of a sequence on: those before have one partial only, which needs none. Others are in
// dq_accum, as in "semaphore".
#pragma once
#include "attention/sequence.cuh"
#include "attention/schedule/tile_counter.cuh"
#include "attention/sm90_backward/tile_scheduler.cuh"
#include "attention/sm90_backward_fused/dq_accum.cuh"
#include "attention/sm90_backward_fused/shared.cuh"
#include "common/ptx/ldst_shared.cuh"

namespace sm90::backward {

// This CTA's tiles; used by one whole warp, all lanes in step. Sequences are sorted as for "persistent".
template <class Spec, class Config, class Params>
class PerSequenceTileScheduler {
 public:
  __device__ __forceinline__ PerSequenceTileScheduler(const Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params) {
    prepare();
  }

  // May be called before next(): a while before, as a number takes its time.
  __device__ __forceinline__ void prepare() {
    if (tiles_left_ != 0 || tile_counter_.prepared()) return;
    tile_counter_.prepare(params_.taken_tiles);
  }

  // False when there is no further tile.
  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    while (tiles_left_ == 0) {
      prepare();
      const i64 work_tile = tile_counter_.take();
      if (work_tile >= params_.batch * Spec::kHeads) return false;
      const int sorted_index = static_cast<int>(work_tile / Spec::kHeads);
      const bool sorted = is_sorted<Config>(params_.batch);
      tile.head = static_cast<int>(work_tile % Spec::kHeads);
      tile.sequence = sorted ? shared_.schedule_order[sorted_index] : sorted_index;
      sequence = sequence_of<Spec, Config>(params_, tile.sequence);
      tiles_left_ = ceil_div(sequence.rows, Config::kBlockM);
      if (sorted && tiles_left_ == 0) return false;  // so it is with all others
    }
    tile.index = --tiles_left_;
    return true;
  }

 private:
  const Shared<Config>& shared_;
  const Params& params_;
  TileCounter tile_counter_;
  int tiles_left_ = 0;  // of the (sequence, head)
};

// Share of a thread in the sum of a Q tile of dq, in shared memory between two partials.
template <class Spec, class Config>
struct SmemDqAccum {
  using Partial = DqPartial<Spec, Config>;

  // Whether it is there. `row0`, here and below: the first of the tile's rows.
  static __device__ __forceinline__ bool has(int row0) {
    return number_of(row0) < static_cast<u32>(Config::kSmemAccumTiles);
  }

  static __device__ __forceinline__ void load(const FusedShared<Config>& shared, int row0,
                                              float (&partial)[Partial::kSums]) {
    const u32 from = address_of(shared, row0);
#pragma unroll
    for (int i = 0; i < Partial::kSums; i += 4) {
      const float4 four = ld_shared_float4(from + i / 4 * kNext);
      partial[i] = four.x, partial[i + 1] = four.y, partial[i + 2] = four.z, partial[i + 3] = four.w;
    }
  }

  static __device__ __forceinline__ void store(FusedShared<Config>& shared, int row0,
                                               const float (&partial)[Partial::kSums]) {
    const u32 to = address_of(shared, row0);
#pragma unroll
    for (int i = 0; i < Partial::kSums; i += 4) {
      st_shared_float4(to + i / 4 * kNext, partial[i], partial[i + 1], partial[i + 2], partial[i + 3]);
    }
  }

 private:
  static constexpr u32 kNext = Config::kConsumers * kWarpgroup * sizeof(float4);

  static __device__ __forceinline__ u32 number_of(int row0) {
    return static_cast<u32>(row0 / Config::kBlockN - Config::kFirstSmemAccumTile);
  }
  static __device__ __forceinline__ u32 address_of(const FusedShared<Config>& shared, int row0) {
    static_assert(sizeof(shared.sums[0]) == Partial::kSums / 4 * kNext, "each thread has fours of its own");
    return shared_address(shared.sums) + number_of(row0) * (Partial::kSums / 4 * kNext) + threadIdx.x * sizeof(float4);
  }
};

}  // namespace sm90::backward
