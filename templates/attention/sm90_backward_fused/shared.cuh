// Attention backward on Hopper, dS computed once: the shared memory of a CTA beyond what both ways have.
#pragma once
#include "attention/sm90_backward/bias_tile.cuh"  // where kBiasInShared
#include "attention/sm90_backward/shared.cuh"

namespace sm90::backward {

constexpr int kExchangeBuffers = 2;  // one is written while others still multiply by the other
constexpr int kAllConsumers = 4;     // named barrier of all consumer warpgroups

// Shares of the consumer threads, under "per_sequence", in the sums of dq that the CTA has in shared memory
// (per_sequence.cuh).
template <class Config, bool kInSmem = (Config::kSmemAccumTiles > 0)>
struct DqAccumStorage {};
template <class Config>
struct DqAccumStorage<Config, true> {
  static constexpr int kFours = Config::kBlockN * Config::kDqColumns / kWarpgroup / 4;
  alignas(16) float4 sums[Config::kSmemAccumTiles][kFours][Config::kConsumers * kWarpgroup];
};

#ifdef kConsumerSites
// Consumer warps have their sums in registers.
#elifdef kSiteWarps
// Where dS of an exchange buffer is, for the warps that read it beside the consumers (site_warps.cuh).
struct ExchangedTile {
  static constexpr int kNoMore = -1;  // in place of the rows: there are no further tiles
  i64 start;                          // as of TileInfo
  int row0, column0;                  // first of the Q tile, and of the KV tile
  int rows, head;
  decltype(TileInfo::targets) targets;
};

// A warp's sums of the elements of operands.
struct SiteSums {
  static constexpr int kTables = ScoreSites::kTables > 0 ? ScoreSites::kTables : 1;
  float tables[kTables];
  int integers[kTables];  // what is still to be added to those, in steps
  float others[ScoreSites::kOthers > 0 ? ScoreSites::kOthers : 1];
  u32 exponents[ScoreSites::kOperands];  // of one over the step of an operand's integers, biased; 0: there are none
  u32 added[ScoreSites::kOperands];      // so many times the terms of a Q tile
};
#endif

// `exchange` is dS of a Q tile, transposed: [column of the KV tile][row of the Q tile], 128-byte swizzled. Each
// consumer warpgroup writes its columns' rows, and all read all of them.
template <class Config>
struct FusedShared : Shared<Config>, DqAccumStorage<Config> {
  u64 exchanged[kExchangeBuffers];
#ifdef kQTileWarp
  u64 q_tile_asked[Config::kStages];
  FollowedTile followed_tile[Config::kStages];
#endif
#ifdef kNumSoftmaxHeads
  // Statistics of the rows of a Q tile where its head has softmax; else the means are 0. These are negative.
  alignas(8) float log2_sums[Config::kStages][Config::kBlockN];
  alignas(8) float means[Config::kStages][Config::kBlockN];
#endif
  u32 semaphore_value[Config::kStages];  // that a Q tile's semaphore is waited for with; only of "semaphore"
#ifdef kConsumerSites
  float site_sums[Config::kSiteWarps][ScoreSites::kOthers];  // of each consumer warp
#elifdef kSiteWarps
  u64 exchange_read[kExchangeBuffers];
  ExchangedTile exchanged_tile[kExchangeBuffers];
  SiteSums site_sums[Config::kSiteWarps];
#endif
  alignas(1024) unsigned char exchange[kExchangeBuffers][Config::kBlockM * kSwizzleBytes];
#ifdef kBiasInShared
  unsigned char bias[Config::kStages][Config::kBlockM / kSwizzleColumns][Config::kBlockN * kSwizzleBytes];
#endif
};

template <class Config>
__device__ __forceinline__ void init_exchange(FusedShared<Config>& shared) {
  // "semaphore": another warp arrives when partials of the Q tile may be added.
  constexpr int kReleases =
      kConsumerReleases<Config> + (Config::kScheduleSemaphore ? kArrivalsPerWarp<Config::kLanesArrive> : 0);
  for (int i = 0; i < kExchangeBuffers; ++i) mbarrier_init(shared_address(&shared.exchanged[i]), kReleases);
#ifdef kQTileWarp
  for (int i = 0; i < Config::kStages; ++i) mbarrier_init(shared_address(&shared.q_tile_asked[i]), 1);
#endif
#ifdef kConsumerSites
  // They wait for nobody.
#elifdef kSiteWarps
  for (int i = 0; i < kExchangeBuffers; ++i) {
    mbarrier_init(shared_address(&shared.exchange_read[i]),
                  Config::kSiteWarps * kArrivalsPerWarp<Config::kLanesArrive>);
  }
#endif
}

}  // namespace sm90::backward
