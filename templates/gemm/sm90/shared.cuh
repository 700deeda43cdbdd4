// The gemm family on Hopper: shared memory of a CTA, and what producer and consumers know of a tile.
#pragma once
#include "common/jagged.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/cluster_barrier.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/tma_matrix.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/schedule/pipeline.cuh"
#include "common/schedule/release.cuh"
#include "gemm/column_sums.cuh"
#include "gemm/sequence_tiles.cuh"

namespace gemm {

constexpr int kDepth = 64;  // of a stage: elements of a line of shared memory
constexpr int kWarpgroup = 128;
constexpr int kWarpgroupRows = 64;  // rows of one wgmma

// Rows of a consumer warpgroup, in units of a wgmma.
template <class Config>
constexpr int kRowBlocks = Config::kBlockM / kWarpgroupRows / (Config::kPingPong ? 1 : Config::kConsumers);

// Boxes of 64 columns whose sums are a second result, and warps that add them up, each half a box.
template <class Config>
constexpr int kSummedBoxes =
    Config::kColumnSums == 0 ? 0 : (kSumsOfA<Config> ? Config::kBlockM : Config::kBlockN) / kDepth;
template <class Config>
constexpr int kSumWarps = Config::kColumnSums == 0 ? 0 : 2;

// Warps that give a stage back: those of the consumers that read it, and those that add up its columns, in all CTAs
// that share columns.
template <class Config>
constexpr int kReaders =
    ((Config::kPingPong ? 1 : Config::kConsumers) * kWarpgroup / 32 + kSumWarps<Config>) * Config::kCluster;
// Warps that the producer tells of tiles.
template <class Config>
constexpr int kTileReaders = Config::kConsumers * kWarpgroup / 32 + kSumWarps<Config>;

// A factor is stored with its sum dimension contiguous, [row or column of the result][64], or the other way round,
// [64 rows or columns of the result] after one another, each [64 of the sum][64]: 128-byte lines in the swizzle.
template <class Config>
struct Stage {
  static constexpr int kColumnTiles = (Config::kBlockN + kDepth - 1) / kDepth;
  static constexpr int kABytes = Config::kBlockM * kSwizzleBytes;
  static constexpr int kBBytes = (Config::kBTransposed ? Config::kBlockN : kColumnTiles * kDepth) * kSwizzleBytes;
};

// Units that warps store: pieces of 16 rows and 64 columns, each in the layout of the copy engine.
constexpr int kPieceRows = 16, kPieceColumns = 64;
constexpr int kPieceBytes = kPieceRows * kSwizzleBytes;

template <class Config, bool = (Config::kStoreBuffers > 0)>
struct Stores {
  unsigned char pieces[Config::kConsumers * kWarpgroup / 32][Config::kStoreBuffers][kPieceBytes];
};
template <class Config>
struct Stores<Config, false> {};

template <class Config>
struct Stages : Stores<Config> {
  unsigned char a[Config::kStages][Stage<Config>::kABytes];
  unsigned char b[Config::kStages][Stage<Config>::kBBytes];
  u64 full[Config::kStages];
  u64 empty[Config::kStages];
};

template <class Config, bool = (Config::kSequences != 0)>
struct Shared : Stages<Config> {};
// Products of sequences: the producer finds tiles, and tells all consumers. One of a sequence below 0 is the end.
template <class Config>
struct Shared<Config, true> : Stages<Config> {
  WorkTile tiles[Config::kStages];
  u64 tile_full[Config::kStages];
  u64 tile_empty[Config::kStages];
};

// The next tile that the producer has found, by all lanes of a warp.
template <class Config>
__device__ __forceinline__ WorkTile take_tile(Shared<Config>& shared, sm90::PipelineState<Config::kStages>& queue) {
  const int slot = queue.stage();
  mbarrier_wait(shared_address(&shared.tile_full[slot]), queue.phase());
  WorkTile tile = shared.tiles[slot];
  tile.first = 0;  // as the compiler cannot know
  sm90::release_warp<Config::kLanesArrive>(shared.tile_empty[slot]);
  queue.advance();
  return tile;
}

// Which CTA of its cluster this one is, and which of those that share columns.
template <class Config>
__device__ __forceinline__ int cluster_cta() {
  return Config::kCluster * Config::kClusterK == 1 ? 0 : static_cast<int>(cluster_rank());
}
template <class Config>
__device__ __forceinline__ int cluster_share() {
  return Config::kCluster == 1 ? 0 : cluster_cta<Config>();
}

// Until barriers of all CTAs that share columns are there.
template <class Config>
__device__ __forceinline__ void sync_cluster() {
  if constexpr (Config::kCluster > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }
}

// Named barriers: ping-pong's, one for each consumer, and those of consumers that share a stage.
constexpr int kPingPongBarrier = 1, kStageBarrier = 3;

// A stage has been read by this warp: said to all CTAs that load into it.
template <class Config>
__device__ __forceinline__ void release_stage(u64& barrier) {
  if constexpr (Config::kCluster == 1) {
    sm90::release_warp<Config::kLanesArrive>(barrier);
    return;
  }
  __syncwarp();
  const int lane = threadIdx.x % 32;
  const u32 address = shared_address(&barrier);
  if constexpr (Config::kLanesArrive) {
    for (u32 rank = 0; rank < Config::kCluster; ++rank) mbarrier_arrive_cluster(cluster_address(address, rank));
  } else {
    if (lane < Config::kCluster) mbarrier_arrive_cluster(cluster_address(address, lane));
  }
}

}  // namespace gemm
