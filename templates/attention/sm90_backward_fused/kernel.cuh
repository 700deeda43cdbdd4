// Attention backward for Hopper (sm_90a), S and dP computed once: TMA, mbarrier pipeline, wgmma, warp specialisation.
//
// Each block has tiles of columns, for which it sums up dk and dv over row blocks. What a tile gives to dq of a block
// of rows is added to dq_parts, fp32 in a workspace: five products, where sm90_backward.cuh has seven. bf16 and fp16.
// Formulas: docs/ops.md. Generated around it: see docs/generated-source.md.
//
// "persistent": in whatever order blocks come to it, so that results differ in their last bits from run to run.
// dq_parts is zero at first, and a second kernel rounds it to dq. "ordered": tiles wait for one another, the first one
// stores its part and the last one rounds the sum (sm90_backward_order.cuh). "whole": a block has all tiles of a
// sequence and head, and the sums (sm90_backward_whole.cuh). Results of both are the same in every run.
#pragma once
#include "attention/bias_gradients/kernels.cuh"
#include "attention/sm90_backward/producer.cuh"
#include "attention/sm90_backward_fused/consumer.cuh"
#include "attention/sm90_backward_fused/per_sequence.cuh"
#include "attention/sm90_backward_fused/semaphore_schedule.cuh"
#include "attention/sm90_backward_fused/semaphore_warps.cuh"

namespace sm90::backward {

template <class Spec, class Config, class Params>
__device__ __forceinline__ void produce_columns(FusedShared<Config>& shared, const Params& params) {
  Producer<Spec, Config, Params, FusedShared<Config>> producer(shared, params);
  if constexpr (Config::kScheduleOrdered) {
    producer.template run<Role::kColumns>(SemaphoreTileScheduler<Spec, Config, Params>(shared, params));
  } else if constexpr (Config::kScheduleWhole) {
    producer.template run<Role::kColumns>(PerSequenceTileScheduler<Spec, Config, Params>(shared, params));
  } else {
    producer.template run<Role::kColumns>(ListTileScheduler<0, Spec, Config, Params>(shared, params));
  }
  producer.finish();
}

}  // namespace sm90::backward

template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace sm90::backward;
  using namespace sm90;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  using Block = FusedShared<Config>;
  static_assert(sizeof(Block) <= Config::kSharedBytes && Config::kSharedBytes - sizeof(Block) < 1024,
                "the host face and the template disagree on shared memory");
  Block& shared = *reinterpret_cast<Block*>(shared_bytes);
  const int warp = threadIdx.x / 32;

  if (threadIdx.x == 0) {
    prefetch_tensormap(params.k_map);
    prefetch_tensormap(params.v_map);
    prefetch_tensormap(params.q_block_map);
    prefetch_tensormap(params.dout_block_map);
    init_exchange(shared);
    backward::init_barriers<Config>(shared);
  }
  if (params.batch <= Config::kScheduleSequences) {
    // The sort's counters live where blocks will be; the copy engine writes there next.
    build_schedule<Spec, Config>(shared, shared.streamed_first, params.seq_offsets, static_cast<int>(params.batch),
                                 params.total_rows);
    fence_proxy_async();
  }
  __syncthreads();

  // Consumers come first, so that each of them is an aligned warpgroup.
  constexpr int kProducerWarp = Config::kConsumers * kWarpgroup / 32;
  if (warp >= kProducerWarp) {
    setmaxnreg_dec<Config::kProducerRegisters>();
    if (warp == kProducerWarp) produce_columns<Spec, Config>(shared, params);
    if (warp == kProducerWarp + 1) zero_tails<Config>(shared);
    if constexpr (Config::kScheduleOrdered) {
      if (warp == kProducerWarp + 2) release_semaphores<Spec, Config>(shared, params);
      if (warp == kProducerWarp + 3) wait_for_semaphores<Spec, Config>(shared, params);
    } else if constexpr (Config::kStoreWarp) {
      if (warp == kProducerWarp + 2) store_tiles<Spec, Config>(shared, params);
    }
  } else {
    setmaxnreg_inc<Config::kConsumerRegisters>();
    FusedConsumer<Spec, Config, Params>(shared, params).run();
  }
}

// The second kernel: a block has 8 rows.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void convert_parts(const Params& params) {
  sm90::backward::convert_parts_of_block<Spec>(params);
}
