// Attention backward for Hopper (sm_90a), S and dP computed once: TMA, mbarrier pipeline, wgmma, warp specialisation.
//
// Each CTA has KV tiles, for which it accumulates dk and dv over Q tiles. The partial of dq that a KV tile has for a Q
// tile is added to dq_accum, fp32 in a workspace: five products, where sm90_backward_twopass has seven. bf16 and fp16.
// Formulas: docs/ops-attention.md. Generated around it: see docs/generated-source.md.
//
// "persistent": atomically, so that results differ in their last bits from run to run. CTAs take tiles as they are free.
// dq_accum is zero at first, and a second kernel rounds it to dq. "semaphore": tiles wait for one another, the first
// one stores its partial and the last one rounds the sum (accumulation_order.cuh). "per_sequence": a CTA has all tiles
// of a (sequence, head), and the sums (per_sequence.cuh). Results of both are the same in every run.
#pragma once
#include "attention/operands/gradients/kernels.cuh"
#include "attention/operands/gradients/pairs.cuh"      // where kOfPair
#include "attention/operands/gradients/rows.cuh"       // where kByColumn
#include "attention/operands/gradients/sequences.cuh"  // where kOfSequence
#include "attention/operands/gradients/tables.cuh"     // where ScoreSites
#include "attention/sm90_backward/bias_gradient.cuh"   // where PairScoreProduct
#include "attention/sm90_backward/producer.cuh"
#include "attention/sm90_backward_fused/consumer.cuh"
#include "attention/sm90_backward_fused/per_sequence.cuh"
#include "attention/sm90_backward_fused/q_tile_warp.cuh"     // where kQTileWarp
#include "attention/sm90_backward_fused/row_statistics.cuh"  // where kNumSoftmaxHeads
#include "attention/sm90_backward_fused/semaphore_schedule.cuh"
#include "attention/sm90_backward_fused/semaphore_warps.cuh"
#include "attention/sm90_backward_fused/site_warps.cuh"  // where kSeparateSiteWarps

namespace sm90::backward {

template <class Spec, class Config, class Params>
__device__ __forceinline__ void produce_columns(FusedShared<Config>& shared, const Params& params) {
  Producer<Spec, Config, Params, FusedShared<Config>> producer(shared, params);
  if constexpr (Config::kScheduleSemaphore) {
    producer.template run<Role::kColumns>(SemaphoreTileScheduler<Spec, Config, Params>(shared, params));
  } else if constexpr (Config::kSchedulePerSequence) {
    producer.template run<Role::kColumns>(PerSequenceTileScheduler<Spec, Config, Params>(shared, params));
  } else {
    producer.template run<Role::kColumns>(
        ListTileScheduler<0, Spec, Config, Params, TakenNumbers<Params>>(shared, params));
  }
  producer.finish();
}

}  // namespace sm90::backward

#ifdef kNumSoftmaxHeads
// Follows the kernel of row_statistics.cuh, which is kernel_main.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void attention_gradients(const Params& params) {
#elifdef kAttnFunc
// Follows the kernel of interval_bounds.cuh, which is kernel_main.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void attention_gradients(const Params& params) {
#else
template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
#endif
  using namespace sm90::backward;
  using namespace sm90;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  using SharedMemory = FusedShared<Config>;
  static_assert(sizeof(SharedMemory) <= Config::kSharedBytes && Config::kSharedBytes - sizeof(SharedMemory) < 1024,
                "the host side and the template disagree on shared memory");
  SharedMemory& shared = *reinterpret_cast<SharedMemory*>(shared_bytes);
  const int warp = threadIdx.x / 32;

  if (threadIdx.x == 0) {
    prefetch_tensormap(params.k_map);
    prefetch_tensormap(params.v_map);
    prefetch_tensormap(params.q_moving_map);
    prefetch_tensormap(params.dout_moving_map);
    init_exchange(shared);
    backward::init_barriers<Config>(shared);
  }
  const bool listed = Config::kSchedulePerSequence ? is_sorted<Config>(params.batch)
                                                   : !Config::kScheduleSemaphore || !Config::kLastTilesFirst;
  if (listed) {
    // Counts live where moving tiles will be; the copy engine writes there next.
    build_schedule<Spec, Config>(shared, shared.moving_first, params.seq_offsets, static_cast<int>(params.batch),
                                 params.total_rows);
    fence_proxy_async();
  }
  __syncthreads();

  // Consumers come first, so that each of them is an aligned warpgroup.
  constexpr int kProducerWarp = Config::kConsumers * kWarpgroup / 32;
  if (warp >= kProducerWarp) {
    setmaxnreg_dec<Config::kProducerRegisters>();
    if (warp == kProducerWarp) produce_columns<Spec, Config>(shared, params);
#ifdef kQTileWarp
    if (warp == kProducerWarp + 1) follow_q_tiles<Spec, Config>(shared, params);
#else
    if (warp == kProducerWarp + 1) zero_tails<Config>(shared);
#endif
    if constexpr (Config::kScheduleSemaphore) {
      if (warp == kProducerWarp + 2) release_semaphores<Spec, Config>(shared, params);
      if (warp == kProducerWarp + 3) wait_for_semaphores<Spec, Config>(shared, params);
    } else if constexpr (Config::kStoreWarp) {
      if (warp == kProducerWarp + 2) store_tiles<Spec, Config>(shared, params);
    }
#ifdef kConsumerSites
    // Consumer warps are the site warps.
#elifdef kSiteWarps
    constexpr int kFirstSiteWarp = kProducerWarp + 2;
    if (warp >= kFirstSiteWarp && warp < kFirstSiteWarp + Config::kSiteWarps)
      SiteWarp<Spec, Config, Params>(shared, params, warp - kFirstSiteWarp).run();
#endif
  } else {
    setmaxnreg_inc<Config::kConsumerRegisters>();
    FusedConsumer<Spec, Config, Params>(shared, params).run();
  }
}

// The second kernel: a CTA has 8 rows.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void convert_dq(const Params& params) {
  sm90::backward::convert_dq_rows<Spec>(params);
}
