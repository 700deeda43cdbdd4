// Products of the gemm family on Hopper (sm_90a): TMA, an mbarrier pipeline, wgmma, persistent CTAs.
//
// A producer warp loads 64 columns of both factors at a time. Consumer warpgroups multiply them: all share the rows of
// each tile, or, in ping-pong, two have tiles of their own, so that one multiplies while the other stores. Results
// leave by the copy engine while the next tile is multiplied. CTAs of a cluster have tiles one below the other, and
// load the columns for one another, or have parts of the sum of one tile. Where each sequence has a product of its own,
// the producer finds tiles and tells consumers. Idle warps of the producer's warpgroup add up the columns of a factor
// where that is asked for. bf16 and fp16, sums in fp32. Generated around it: see docs/generated-source.md.
#pragma once
#include "gemm/sm90/column_sums.cuh"
#include "gemm/sm90/consumer.cuh"
#include "gemm/sm90/producer.cuh"
#include "gemm/split_k.cuh"  // where SplitK

template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace gemm;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  static_assert(sizeof(Shared<Config>) <= Config::kSharedBytes && Config::kSharedBytes - sizeof(Shared<Config>) < 128,
                "the host side and the template disagree on shared memory");
  Shared<Config>& shared = *reinterpret_cast<Shared<Config>*>(shared_bytes);
  const int warpgroup = threadIdx.x / kWarpgroup;

  if (threadIdx.x == 0) {
    prefetch_tensormap(params.a_map);
    prefetch_tensormap(params.b_map);
    if constexpr (Config::kStoreBuffers > 0) prefetch_tensormap(params.out_map);
    for (int i = 0; i < Config::kStages; ++i) {
      mbarrier_init(shared_address(&shared.full[i]), 1);
      mbarrier_init(shared_address(&shared.empty[i]), kReaders<Config> * sm90::kArrivalsPerWarp<Config::kLanesArrive>);
    }
    if constexpr (Config::kSequences) {
      for (int i = 0; i < Config::kStages; ++i) {
        mbarrier_init(shared_address(&shared.tile_full[i]), 1);
        mbarrier_init(shared_address(&shared.tile_empty[i]),
                      kTileReaders<Config> * sm90::kArrivalsPerWarp<Config::kLanesArrive>);
      }
    }
    fence_mbarrier_init();
  }
  sync_cluster<Config>();

  const TileScheduler<Config> scheduler(params.rows, Config::kColumns, params.depth, cluster_cta<Config>());
  if (warpgroup == Config::kConsumers) {
    setmaxnreg_dec<Config::kProducerRegisters>();
    const int warp = threadIdx.x / 32 - Config::kConsumers * kWarpgroup / 32;
    if constexpr (Config::kSequences) {
      if (warp == 0) produce_sequences<Config>(shared, params);
    } else {
      if (threadIdx.x == Config::kConsumers * kWarpgroup) produce<Config>(shared, params, scheduler);
    }
    if constexpr (Config::kClusterK > 1) cluster_sync();  // consumers wait for those of all CTAs
    if constexpr (Config::kColumnSums) {
      if (warp > 0 && warp <= kSumWarps<Config>) {
        ColumnSummer<Config, Params> summer(shared, params, warp - 1);
        if constexpr (Config::kSequences) {
          summer.run_sequences();
        } else {
          summer.run(scheduler);
        }
      }
    }
  } else {
    setmaxnreg_inc<Config::kConsumerRegisters>();
    if constexpr (Config::kPingPong) {
      // The first tile is the first consumer's.
      if (warpgroup == 1) named_barrier_arrive(kPingPongBarrier, 2 * kWarpgroup);
    }
    if constexpr (Config::kSequences) {
      Consumer<Config, Params>(shared, params, warpgroup).run_sequences();
    } else {
      Consumer<Config, Params>(shared, params, warpgroup).run(scheduler);
    }
  }
  // No CTA ends while others may still load into its shared memory, or arrive on its barriers.
  if constexpr (Config::kCluster > 1) cluster_sync();
  if constexpr (Config::kClusterK > 1) cluster_sync_reads();
}
