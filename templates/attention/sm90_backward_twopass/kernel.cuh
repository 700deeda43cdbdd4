// Attention backward for Hopper (sm_90a): TMA, mbarrier pipeline, wgmma, warp specialisation. Deterministic, without
// workspace.
//
// Each CTA has a tile of rows, for which it sums up dq over KV tiles, or a tile of columns, for which it sums up
// dk and dv over Q tiles, or one of both: S and dP are computed in each role, so no sum is shared between CTAs.
// bf16 and fp16. Formulas: docs/ops-attention.md. Generated around it: see docs/generated-source.md.
#pragma once
#include "attention/operands/gradients/kernels.cuh"
#include "attention/operands/gradients/pairs.cuh"         // where kOfPair
#include "attention/operands/gradients/rows.cuh"          // where kByColumn
#include "attention/operands/gradients/sequences.cuh"     // where kOfSequence
#include "attention/operands/gradients/softmax_rows.cuh"  // where kNumSoftmaxHeads
#include "attention/operands/gradients/tables.cuh"        // where ScoreSites
#include "attention/sm90_backward/bias_gradient.cuh"      // where PairScoreProduct
#include "attention/sm90_backward/producer.cuh"
#include "attention/sm90_backward_twopass/consumer.cuh"
#include "attention/sm90_backward_twopass/packed_producer.cuh"

namespace sm90::backward {

template <class Params>
__device__ __forceinline__ void prefetch_tensormaps(const Params& params) {
  prefetch_tensormap(params.q_map);
  prefetch_tensormap(params.k_map);
  prefetch_tensormap(params.v_map);
  prefetch_tensormap(params.dout_map);
  prefetch_tensormap(params.q_moving_map);
  prefetch_tensormap(params.k_moving_map);
  prefetch_tensormap(params.v_moving_map);
  prefetch_tensormap(params.dout_moving_map);
}

template <int kIndex, class Spec, class Config, class Params>
__device__ __forceinline__ void produce_role(Producer<Spec, Config, Params>& producer, const Shared<Config>& shared,
                                             const Params& params) {
  constexpr Role kRole = role_at<Config>(kIndex);
  if constexpr (Config::kSchedulePersistent) {
    producer.template run<kRole>(ListTileScheduler<kIndex, Spec, Config, Params>(shared, params));
  } else if (grid_role<Config>() == kRole) {
    producer.template run<kRole>(GridTileScheduler<Spec, Config, Params>(params));
  }
}

template <class Spec, class Config, class Params>
__device__ __forceinline__ void produce(PackedShared<Config>& shared, const Params& params) {
  PackedProducer<Spec, Config, Params> producer(shared, params);
  producer.template run<0>();
  producer.template run<1>();
  if constexpr (Config::kRoles == 3) producer.template run<2>();
  producer.finish();
}

template <class Spec, class Config, class Params>
__device__ __forceinline__ void produce(Shared<Config>& shared, const Params& params) {
  Producer<Spec, Config, Params> producer(shared, params);
  produce_role<0>(producer, shared, params);
  produce_role<1>(producer, shared, params);
  if constexpr (Config::kRoles == 3) produce_role<2>(producer, shared, params);
  producer.finish();
}

template <int kIndex, class Spec, class Config, class Params>
__device__ __forceinline__ void consume_role(Shared<Config>& shared, const Params& params, Position<Config>& position) {
  constexpr Role kRole = role_at<Config>(kIndex);
  if (Config::kSchedulePersistent || grid_role<Config>() == kRole) {
    position = Consumer<kRole, Spec, Config, Params>(shared, params, position).run();
  }
}

template <class Spec, class Config, class Params>
__device__ __forceinline__ void consume(Shared<Config>& shared, const Params& params) {
  Position<Config> position;
  consume_role<0, Spec>(shared, params, position);
  consume_role<1, Spec>(shared, params, position);
  if constexpr (Config::kRoles == 3) consume_role<2, Spec>(shared, params, position);
}

}  // namespace sm90::backward

#ifdef kNumSoftmaxHeads
// Follows the kernel of softmax_rows.cuh, which is kernel_main.
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
  using SharedMemory = backward::KernelShared<Config>;
  static_assert(sizeof(SharedMemory) <= Config::kSharedBytes && Config::kSharedBytes - sizeof(SharedMemory) < 128,
                "the host side and the template disagree on shared memory");
  SharedMemory& shared = *reinterpret_cast<SharedMemory*>(shared_bytes);
  const int warp = threadIdx.x / 32;

  if (threadIdx.x == 0) {
    prefetch_tensormaps(params);
    backward::init_barriers(shared);
  }
  if constexpr (Config::kPackSequences) {
    // Nothing is sorted.
  } else if constexpr (Config::kSchedulePersistent) {
    // Counts live where moving tiles will be; the copy engine writes there next.
    build_schedule<Spec, Config, Config::kRoles>(shared, shared.moving_first, params.seq_offsets,
                                                 static_cast<int>(params.batch), params.total_rows);
    fence_proxy_async();
  } else {
    if (GridTileScheduler<Spec, Config, Params>(params).empty()) return;
  }
  __syncthreads();

  // Consumers come first, so that each of them is an aligned warpgroup.
  constexpr int kProducerWarp = Config::kConsumers * kWarpgroup / 32;
  if (warp >= kProducerWarp) {
    if constexpr (Config::kProducerRegisters != 0) setmaxnreg_dec<Config::kProducerRegisters>();
    if (warp == kProducerWarp) produce<Spec, Config>(shared, params);
    if constexpr (sm90::backward::kTailWarp<Config>) {
      if (warp == kProducerWarp + 1) zero_tails(shared);
    }
  } else {
    if constexpr (Config::kProducerRegisters != 0) setmaxnreg_inc<Config::kConsumerRegisters>();
    consume<Spec, Config>(shared, params);
  }
}
