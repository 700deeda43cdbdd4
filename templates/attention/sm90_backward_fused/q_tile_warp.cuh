// Attention backward on Hopper, dS computed once: the tail warp where it follows all Q tiles. It brings to shared
// memory what consumers ask of their rows, the statistics of heads with softmax and the bias, and zeroes what Q tiles
// hold past their sequence's end.
#pragma once
#include "attention/sm90_backward/bias_tile.cuh"  // where kBiasInShared
#include "attention/sm90_backward/producer.cuh"
#include "attention/sm90_backward_fused/shared.cuh"
#include "attention/softmax.cuh"  // where kNumSoftmaxHeads
#include "common/ptx/ldst_shared.cuh"

namespace sm90::backward {

#ifdef kNumSoftmaxHeads
// Two rows for each lane. Rows past the sequence's end may have any: their q and dout are zero.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void bring_statistics(FusedShared<Config>& shared, const Params& params, int stage) {
  const FollowedTile tile = shared.followed_tile[stage];
  const int own = static_cast<int>(threadIdx.x) % 32 * 2;
  float2 known[2] = {make_float2(0.0f, 0.0f), make_float2(0.0f, 0.0f)};
  if (is_softmax_head<Spec>(tile.head)) {
    const float2* const from =
        params.softmax_rows + static_cast<i64>(tile.row + own) * Spec::kNumSoftmaxHeads + tile.head;
    if (own < tile.rows) known[0] = __ldg(from);
    if (own + 1 < tile.rows) known[1] = __ldg(from + Spec::kNumSoftmaxHeads);
  }
  st_shared_float2(shared_address(&shared.log2_sums[stage][own]), known[0].x, known[1].x);
  st_shared_float2(shared_address(&shared.means[stage][own]), -known[0].y, -known[1].y);
}

#endif
#ifdef kBiasInShared
__device__ __forceinline__ BiasPlace bias_of(const FollowedTile& tile) {
  return {tile.sequence, tile.head, tile.row0, tile.column0, tile.row0 + tile.rows};
}

#endif
template <class Spec, class Config, class Params>
__device__ void follow_q_tiles(FusedShared<Config>& shared, const Params& params) {
  const bool leader = threadIdx.x % 32 == 0;
  PipelineState<Config::kStages> pipeline;
  u32 tail_phase = 0;
  while (true) {
    const int stage = pipeline.stage();
    mbarrier_wait(shared_address(&shared.q_tile_asked[stage]), pipeline.phase());
    const int rows = shared.followed_tile[stage].rows;
    if (rows == 0) return;
#ifdef kBiasInShared
    load_bias_tile<Config::kBlockN, Config::kBlockM, Spec>(
        params, bias_of(shared.followed_tile[stage]), shared_address(shared.bias[stage]), shared.moving_full[stage]);
#endif
#ifdef kNumSoftmaxHeads
    bring_statistics<Spec, Config>(shared, params, stage);
#endif
    if (rows < Config::kBlockN) {
      mbarrier_wait(shared_address(&shared.tail_full), tail_phase);
      tail_phase ^= 1;
      zero_tail_rows(shared, stage, rows, threadIdx.x % 32, 32);
      fence_proxy_async();
      __syncwarp();
      if (leader) mbarrier_arrive(shared_address(&shared.moving_full[stage]));
      release_warp<Config::kLanesArrive>(shared.tail_empty);
    }
    release_warp<Config::kLanesArrive>(shared.moving_full[stage]);
    pipeline.advance();
  }
}

}  // namespace sm90::backward
