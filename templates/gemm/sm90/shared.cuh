// The gemm family on Hopper: shared memory of a CTA, and what producer and consumers know of a tile.
#pragma once
#include "common/jagged.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/tma_matrix.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/sm90/pipeline.cuh"

namespace gemm {

constexpr int kWarpgroup = 128;
constexpr int kWarpgroupRows = 64;  // rows of one wgmma
constexpr int kDepth = 64;          // of a stage: a line of the swizzle

// Rows of a consumer warpgroup, in units of a wgmma.
template <class Config>
constexpr int kRowBlocks = Config::kBlockM / kWarpgroupRows / (Config::kPingPong ? 1 : Config::kConsumers);

// Warps that give a stage back: those of the consumers that read it.
template <class Config>
constexpr int kReaders = (Config::kPingPong ? 1 : Config::kConsumers) * kWarpgroup / 32;

// A factor is stored with its sum dimension contiguous, [row or column of the result][64], or the other way round,
// [64 rows or columns of the result] after one another, each [64 of the sum][64]: 128-byte lines in the swizzle.
template <class Config>
struct Stage {
  static constexpr int kColumnTiles = (Config::kBlockN + kDepth - 1) / kDepth;
  static constexpr int kABytes = Config::kBlockM * kSwizzleBytes;
  static constexpr int kBBytes = (Config::kBTransposed ? Config::kBlockN : kColumnTiles * kDepth) * kSwizzleBytes;
};

template <class Config>
struct Shared {
  unsigned char a[Config::kStages][Stage<Config>::kABytes];
  unsigned char b[Config::kStages][Stage<Config>::kBBytes];
  u64 full[Config::kStages];
  u64 empty[Config::kStages];
};

// Named barriers: ping-pong's, one for each consumer.
constexpr int kTurnBarrier = 1;

template <class Config>
__device__ __forceinline__ void release_stage(u64& barrier) {
  __syncwarp();
  if (Config::kLanesArrive || threadIdx.x % 32 == 0) mbarrier_arrive(shared_address(&barrier));
}

}  // namespace gemm
