// Attention backward for Hopper (sm_90a): TMA, mbarrier pipeline, wgmma, warp specialisation. Deterministic, without
// workspace.
//
// Each block has a tile of rows, for which it sums up dq over column blocks, or a tile of columns, for which it sums up
// dk and dv over row blocks: S and dP are computed in both roles, so no sum is shared between blocks. bf16 and fp16.
// Formulas: docs/ops.md. Generated around it: see docs/generated-source.md.
#pragma once
#include "hstu_attention/sm90_backward_consumer.cuh"
#include "hstu_attention/sm90_backward_producer.cuh"

namespace sm90::backward {

template <class Params>
__device__ __forceinline__ void prefetch_tensormaps(const Params& params) {
  prefetch_tensormap(params.q_map);
  prefetch_tensormap(params.k_map);
  prefetch_tensormap(params.v_map);
  prefetch_tensormap(params.dout_map);
  prefetch_tensormap(params.q_block_map);
  prefetch_tensormap(params.k_block_map);
  prefetch_tensormap(params.v_block_map);
  prefetch_tensormap(params.dout_block_map);
}

// Columns go first: of a list, because they take longer.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void produce(Shared<Config>& shared, const Params& params) {
  Producer<Spec, Config, Params> producer(shared, params);
  if constexpr (Config::kSchedulePersistent) {
    producer.template run<Role::kColumns>(ListSchedule<Role::kColumns, Spec, Config, Params>(shared, params));
    producer.template run<Role::kRows>(ListSchedule<Role::kRows, Spec, Config, Params>(shared, params));
  } else if (grid_role() == Role::kColumns) {
    producer.template run<Role::kColumns>(GridSchedule<Spec, Config, Params>(params));
  } else {
    producer.template run<Role::kRows>(GridSchedule<Spec, Config, Params>(params));
  }
  producer.finish();
}

template <class Spec, class Config, class Params>
__device__ __forceinline__ void consume(Shared<Config>& shared, const Params& params) {
  Position<Config> position;
  if (Config::kSchedulePersistent || grid_role() == Role::kColumns) {
    position = Consumer<Role::kColumns, Spec, Config, Params>(shared, params, position).run();
  }
  if (Config::kSchedulePersistent || grid_role() == Role::kRows) {
    Consumer<Role::kRows, Spec, Config, Params>(shared, params, position).run();
  }
}

}  // namespace sm90::backward

template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace sm90::backward;
  using namespace sm90;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  using Block = backward::Shared<Config>;
  static_assert(sizeof(Block) <= Config::kSharedBytes && Config::kSharedBytes - sizeof(Block) < 128,
                "the host face and the template disagree on shared memory");
  Block& shared = *reinterpret_cast<Block*>(shared_bytes);
  const int warp = threadIdx.x / 32;

  if (threadIdx.x == 0) {
    prefetch_tensormaps(params);
    backward::init_barriers(shared);
  }
  if constexpr (Config::kSchedulePersistent) {
    if (params.batch <= Config::kScheduleSequences) {
      // The sort's counters live where blocks will be; the copy engine writes there next.
      build_schedule<Spec, Config>(shared, reinterpret_cast<u16*>(shared.streamed_first), params.seq_offsets,
                                   static_cast<int>(params.batch), params.total_rows);
      fence_proxy_async();
    }
  } else {
    if (GridSchedule<Spec, Config, Params>(params).empty()) return;
  }
  __syncthreads();

  // Consumers come first, so that each of them is an aligned warpgroup.
  constexpr int kProducerWarp = Config::kConsumers * kWarpgroup / 32;
  if (warp >= kProducerWarp) {
    if constexpr (Config::kProducerRegisters != 0) setmaxnreg_dec<Config::kProducerRegisters>();
    if (warp == kProducerWarp) produce<Spec, Config>(shared, params);
    if constexpr (kTailWarp<Config>) {
      if (warp == kProducerWarp + 1) zero_tails(shared);
    }
  } else {
    if constexpr (Config::kProducerRegisters != 0) setmaxnreg_inc<Config::kConsumerRegisters>();
    consume<Spec, Config>(shared, params);
  }
}
