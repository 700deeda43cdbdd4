// Products by mma.sync: shared memory of a CTA, and how its warps share out a tile.
#pragma once
#include "common/ptx/cp_async.cuh"
#include "common/ptx/ld_global.cuh"
#include "common/ptx/mma.cuh"
#include "gemm/sequence_tiles.cuh"

namespace gemm {

constexpr int kLineBytes = 128;  // of shared memory: 64 elements, in pieces
constexpr int kPieceBytes = 16, kPieceElements = 8;

// Two warps below each other, the others beside them. A warp has blocks of 16 rows and 8 columns, as mma.sync.
template <class Config>
struct WarpTile {
  static constexpr int kThreads = Config::kConsumers * 128;
  static constexpr int kWarpsM = 2, kWarpsN = kThreads / 32 / kWarpsM;
  static constexpr int kRows = Config::kBlockM / kWarpsM, kColumns = Config::kBlockN / kWarpsN;
  static constexpr int kRowBlocks = kRows / 16, kColumnBlocks = kColumns / 8;
  static_assert(kRows % 16 == 0 && kColumns % 32 == 0, "a warp stores four blocks of columns together");

  using Sums = float[kRowBlocks][kColumnBlocks][4];

  // Where a thread's warp begins in the tile.
  static __device__ __forceinline__ int row() { return threadIdx.x / 32 / kWarpsN * kRows; }
  static __device__ __forceinline__ int column() { return threadIdx.x / 32 % kWarpsN * kColumns; }
};

// A factor's lines are along the sum, a line for each row or column of the result, or along the result, 64 lines for
// each 64 of its rows or columns. Pieces of a line lie in another order in each, so that eight lines below each other
// are read at once.
template <class Config>
struct Shared {
  unsigned char a[Config::kStages][Config::kBlockM * kLineBytes];
  unsigned char b[Config::kStages][Config::kBlockN * kLineBytes];
};

__device__ __forceinline__ u32 piece_address(u32 lines, int line, int piece) {
  return lines + line * kLineBytes + (piece ^ line % 8) * kPieceBytes;
}

}  // namespace gemm
