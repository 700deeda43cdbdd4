// Attention forward for Hopper (sm_90a): TMA, mbarrier pipeline, wgmma, warp specialisation. Of hstu_attention and
// delta_hstu_attention.
//
// Producer warps load Q tiles and KV tiles; each consumer warpgroup owns 64 rows of the tile. bf16 and
// fp16. Formulas: docs/ops-attention.md. Generated around it: see docs/generated-source.md.
#pragma once
#include "attention/sm90_forward/consumer.cuh"
#include "attention/sm90_forward/packed_producer.cuh"
#include "attention/sm90_forward/producer.cuh"

namespace sm90 {

template <class Config>
__device__ __forceinline__ void init_barriers(Shared<Config>& shared) {
  constexpr int kReleases =
      Config::kConsumers * kWarpgroup / 32 * kArrivalsPerWarp<Config::kLanesArrive>;  // all consumer warps
  for (int i = 0; i < Config::kQueryStages; ++i) {
    mbarrier_init(shared_address(&shared.q_full[i]), 1);
    mbarrier_init(shared_address(&shared.q_empty[i]), kReleases);
  }
  for (int i = 0; i < Config::kStages; ++i) {
    mbarrier_init(shared_address(&shared.k_full[i]), 1);
    mbarrier_init(shared_address(&shared.k_empty[i]), kReleases);
    mbarrier_init(shared_address(&shared.v_full[i]), 1);
    mbarrier_init(shared_address(&shared.v_empty[i]), kReleases);
  }
  mbarrier_init(shared_address(&shared.tail_full), 1);
  mbarrier_init(shared_address(&shared.tail_empty), kArrivalsPerWarp<Config::kLanesArrive>);
  fence_mbarrier_init();
}

}  // namespace sm90

template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace sm90;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
#ifdef kHeadCluster
  using Memory = SharedWithValues<Config>;
#else
  using Memory = KernelShared<Config>;
#endif
  static_assert(sizeof(Memory) <= Config::kSharedBytes && Config::kSharedBytes - sizeof(Memory) < 128,
                "the host side and the template disagree on shared memory");
  Memory& shared = *reinterpret_cast<Memory*>(shared_bytes);
  const int warp = threadIdx.x / 32;

  if (threadIdx.x == 0) {
    prefetch_tensormap(params.q_map);
    prefetch_tensormap(params.k_map);
    prefetch_tensormap(params.v_map);
    prefetch_tensormap(params.q_tail_map);
    prefetch_tensormap(params.k_tail_map);
    prefetch_tensormap(params.v_tail_map);
    init_barriers(shared);
#ifdef kHeadCluster
    init_values(shared);
    fence_mbarrier_init();
#endif
    if constexpr (Config::kSplit) shared.tile[0].head = -1;
  }
  if constexpr (Config::kSchedulePersistent && !Config::kPackSequences) {
    // Counts live where k will be; the copy engine writes there next.
    build_schedule<Spec, Config>(shared, shared.k, params.seq_offsets, static_cast<int>(params.batch),
                                 params.total_rows);
    fence_proxy_async();
  }
  __syncthreads();
#ifdef kHeadCluster
  cluster_sync();  // no CTA arrives at a barrier of another one before that is set up
#endif

  // Consumers come first, so that each of them is an aligned warpgroup.
  constexpr int kProducerWarp = Config::kConsumers * kWarpgroup / 32;
  if constexpr (Config::kProducerRegisters != 0) {
    if (warp >= kProducerWarp) {
      setmaxnreg_dec<Config::kProducerRegisters>();
      if (warp == kProducerWarp) Producer<Loads::kQueriesAndKeys, Spec, Config, Params>(shared, params).run();
      if (warp == kProducerWarp + 1) Producer<Loads::kValues, Spec, Config, Params>(shared, params).run();
      if (warp == kProducerWarp + 2) zero_tails(shared);
#ifdef kHeadCluster
      constexpr int kValueWarp = kProducerWarp + kWarpgroup / 32;
      if (warp >= kValueWarp) ValueWarp<Spec, Config, Params>(shared, params, warp - kValueWarp).run();
#endif
    } else {
      setmaxnreg_inc<Config::kConsumerRegisters>();
      Consumer<Spec, Config, Params>(shared, params).run();
    }
  } else if (warp == kProducerWarp) {
    if constexpr (Config::kPackSequences) {
      PackedProducer<Spec, Config, Params>(shared, params).run();
    } else {
      Producer<Loads::kAll, Spec, Config, Params>(shared, params).run();
    }
  } else {
    Consumer<Spec, Config, Params>(shared, params).run();
  }
#ifdef kHeadCluster
  cluster_sync_reads();  // no CTA ends while others write to its shared memory, or arrive at its barriers
#endif
  if constexpr (Config::kSplit) {
    if (cluster_blocks() > 1) {
      cluster_sync();
      add_partials<Spec, Config>(shared, params);
      cluster_sync_reads();  // no CTA ends while another one reads its shared memory
    }
  }
}
