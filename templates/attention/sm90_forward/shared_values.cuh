// hstu_attention forward on Hopper: a part of the score that is the same for all heads, computed once by a cluster of
// CTAs, each of which has the same tile of another head.
//
// A warpgroup of each CTA computes the values of its share of a KV tile's columns, and writes them to the shared memory
// of all CTAs of the cluster, in the order in which consumer threads hold accumulators of S. Every consumer warpgroup
// has a ring of kValueStages such tiles.
#pragma once
#include "attention/pair.cuh"
#include "attention/sm90_forward/producer.cuh"
#include "attention/sm90_forward/shared.cuh"
#include "common/ptx/cluster_barrier.cuh"
#include "common/ptx/cluster_values.cuh"
#include "common/regions.cuh"

namespace sm90 {

constexpr int kValueStages = 2;

// `values`: of the four accumulators of a thread in 8 columns.
template <class Config>
struct ValueRing {
  alignas(16) float4 values[kValueStages][Config::kBlockN / 8][kWarpgroup];
  u64 full[kValueStages];
  u64 empty[kValueStages];
};

// Behind the shared memory of other kernels.
template <class Config>
struct SharedWithValues : Shared<Config> {
  ValueRing<Config> rings[Config::kConsumers];
};

template <class Config>
__device__ __forceinline__ void init_values(SharedWithValues<Config>& shared) {
  constexpr int kWarps = kWarpgroup / 32;
  for (int w = 0; w < Config::kConsumers; ++w) {
    for (int i = 0; i < kValueStages; ++i) {
      mbarrier_init(shared_address(&shared.rings[w].full[i]), 1);
      mbarrier_init(shared_address(&shared.rings[w].empty[i]), Config::kHeadCluster * kWarps);
    }
  }
}

// One warp arrives at the barrier of every CTA of the cluster.
template <class Config>
__device__ __forceinline__ void arrive_at_cluster(u64& barrier) {
  __syncwarp();
  const u32 rank = threadIdx.x % 32;
  if (rank < Config::kHeadCluster) mbarrier_arrive_cluster(cluster_address(shared_address(&barrier), rank));
}

// A warp that computes values: those of the same warp of each consumer warpgroup.
template <class Spec, class Config, class Params>
class ValueWarp {
 public:
  __device__ __forceinline__ ValueWarp(SharedWithValues<Config>& shared, const Params& params, int warp)
      : shared_(shared), params_(params), warp_(warp), rank_(cluster_rank()) {}

  __device__ __forceinline__ void run() {
    TileScheduler<Spec, Config, Params> schedule(shared_, params_);
    Tile tile;
    Sequence sequence;
    while (schedule.next(tile, sequence)) {
      const int row0 = sequence.query_begin + tile.row_tile * Config::kBlockM;
      VisibleTiles<Config> kv_tiles(sequence, row0, min(row0 + Config::kBlockM, sequence.rows));
      while (!kv_tiles.empty()) {
        const MovingTileInfo kv_tile = kv_tiles.pop();
#pragma unroll
        for (int w = 0; w < Config::kConsumers; ++w) {
          if (kv_tile.flags & MovingTileInfo::visible(w)) {
            compute(w, ring_[w], row0 + w * kWarpgroupRows, kv_tile.row0, sequence);
            ring_[w].advance();
          }
        }
      }
    }
  }

 private:
  __device__ __forceinline__ void compute(int w, const PipelineState<kValueStages>& state, int row0, int column0,
                                          const Sequence& sequence) {
    constexpr int kCluster = Config::kHeadCluster, kGroups = Config::kBlockN / 8;
    ValueRing<Config>& ring = shared_.rings[w];
    const int stage = state.stage(), lane = threadIdx.x % 32;
    const int row = row0 + warp_ * kTailBoxRows + lane / 4, column = column0 + lane % 4 * 2;
    mbarrier_wait(shared_address(&ring.empty[stage]), state.phase() ^ 1);
    const u32 full = shared_address(&ring.full[stage]);
    // Bytes of all CTAs; theirs may come before this says how many there are.
    if (warp_ == 0 && lane == 0) mbarrier_arrive_expect_tx(full, sizeof(ring.values[0]));
#pragma unroll 1
    for (int group = rank_; group < kGroups; group += kCluster) {
      const auto value = [&](int further_row, int further_column) {
        const Pair pair = {row + further_row, column + group * 8 + further_column, sequence.rows, sequence.targets, 0,
                           sequence.start};
        return score_value(0.0f, [=] { return pair; }, params_);
      };
      const float4 values = make_float4(value(0, 0), value(0, 1), value(8, 0), value(8, 1));
      const u32 place = shared_address(&ring.values[stage][group][warp_ * 32 + lane]);
#pragma unroll
      for (int rank = 0; rank < kCluster; ++rank)
        st_async_float4(cluster_address(place, rank), values, cluster_address(full, rank));
    }
  }

  SharedWithValues<Config>& shared_;
  const Params& params_;
  const int warp_;
  const int rank_;
  PipelineState<kValueStages> ring_[Config::kConsumers];
};

// A consumer warpgroup's ring, as its threads read it.
template <class Config>
class ValueReader {
 public:
  __device__ __forceinline__ explicit ValueReader(Shared<Config>& shared, int warpgroup)
      : ring_(static_cast<SharedWithValues<Config>&>(shared).rings[warpgroup]) {}

  // Waits for the values of the next KV tile that the warpgroup sees.
  __device__ __forceinline__ void wait() const {
    mbarrier_wait(shared_address(&ring_.full[state_.stage()]), state_.phase());
  }
  // Reads those of accumulators [4 * group, 4 * group + 4).
  __device__ __forceinline__ float4 get(int group) const {
    return ring_.values[state_.stage()][group][threadIdx.x % kWarpgroup];
  }
  __device__ __forceinline__ void release() {
    arrive_at_cluster<Config>(ring_.empty[state_.stage()]);
    state_.advance();
  }

 private:
  ValueRing<Config>& ring_;
  PipelineState<kValueStages> state_;
};

}  // namespace sm90
