// Attention backward on Hopper, dS computed once: what a block keeps in shared memory beyond what both ways keep.
#pragma once
#include "attention/sm90_backward/shared.cuh"

namespace sm90::backward {

constexpr int kExchangeBuffers = 2;  // one is written while others still multiply by the other
constexpr int kAllConsumers = 4;     // named barrier of all consumer warpgroups

// Of "whole", what each consumer thread has of the sums of dq that its block keeps (sm90_backward_whole.cuh).
template <class Config, bool kKept = (Config::kKeptSums > 0)>
struct DqSums {};
template <class Config>
struct DqSums<Config, true> {
  static constexpr int kFours = Config::kBlockN * Config::kPartColumns / kWarpgroup / 4;
  alignas(16) float4 sums[Config::kKeptSums][kFours][Config::kConsumers * kWarpgroup];
};

// `exchange` is dS of a block, transposed: [column of the tile][row of the block], 128-byte swizzled. Each consumer
// warpgroup writes its columns' lines, and all read all of them.
template <class Config>
struct FusedShared : Shared<Config>, DqSums<Config> {
  u64 exchanged[kExchangeBuffers];
  u32 semaphore_value[Config::kStages];  // that a block's semaphore is waited for with; only of "ordered"
  alignas(1024) unsigned char exchange[kExchangeBuffers][Config::kBlockM * kSwizzleBytes];
};

template <class Config>
__device__ __forceinline__ void init_exchange(FusedShared<Config>& shared) {
  // "ordered": another warp arrives when parts of the block may be added.
  constexpr int kReleases = kConsumerReleases<Config> + (Config::kScheduleOrdered ? kArrivalsPerWarp<Config> : 0);
  for (int i = 0; i < kExchangeBuffers; ++i) mbarrier_init(shared_address(&shared.exchanged[i]), kReleases);
}

}  // namespace sm90::backward
