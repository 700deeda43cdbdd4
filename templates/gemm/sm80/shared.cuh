// Products by mma.sync or fused multiply-adds: shared memory of a CTA, and how its warps share out a tile.
#pragma once
#include "common/ptx/cp_async.cuh"
#include "common/ptx/ld_global.cuh"
#include "common/ptx/mma.cuh"
#include "gemm/sequence_tiles.cuh"

namespace gemm {

constexpr int kLineBytes = 128;  // of shared memory, in pieces
constexpr int kPieceBytes = 16, kLinePieces = kLineBytes / kPieceBytes;

template <class Config>
constexpr int kPieceElements = Config::kDepth / kLinePieces;
template <class Config>
constexpr int kElementBytes = kLineBytes / Config::kDepth;

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

// Which rows and columns of its warp's part of the tile, which begins at `from`, a thread has the sums of. It has four
// pairs of neighbours of each row of four blocks of columns, the first of which is `block`.
template <int kElementBytes, bool kSimt>
struct SumLayout {
  static __device__ __forceinline__ i64 row(i64 from, int row_block, int half) {
    const int lane = threadIdx.x % 32;
    return from + row_block * 16 + half * 8 + lane / 4;
  }
  static __device__ __forceinline__ int column(int from, int block, int pair) {
    const int lane = threadIdx.x % 32;
    return from + (block + pair) * 8 + lane % 4 * 2;
  }
  template <class Blocks>
  static __device__ __forceinline__ float sum(const Blocks& blocks, int block, int half, int pair, int i) {
    return blocks[block + pair][half * 2 + i];
  }
};

// For elements of 32 bits, 32 rows or columns are in four fragments of eight, so that 16 bytes of shared memory have
// one of each, and a thread's pairs are neighbours of each other, too: element `index` of fragment f is
// interleaved(index) + f.
__device__ __forceinline__ int interleaved(int index) { return (index / 2 + index % 2 * 4) * 4; }

template <bool kSimt>
struct SumLayout<4, kSimt> {
  static __device__ __forceinline__ i64 row(i64 from, int row_block, int half) {
    return from + row_block / 2 * 32 + row_block % 2 * 2 + half + interleaved(lane_row());
  }
  static __device__ __forceinline__ int column(int from, int block, int pair) {
    return from + block * 8 + pair / 2 * 16 + pair % 2 * 2 + lane_column() * 4;
  }
  template <class Blocks>
  static __device__ __forceinline__ float sum(const Blocks& blocks, int block, int half, int pair, int i) {
    return blocks[block + pair % 2 * 2 + i][half * 2 + pair / 2];
  }
  // Eight by four lanes: as mma.sync has them, or so that of each four, two read the same 16 bytes of either factor,
  // which are then read by half a warp at once.
  static __device__ __forceinline__ int lane_row() {
    const int lane = threadIdx.x % 32;
    return kSimt ? lane / 2 % 8 : lane / 4;
  }
  static __device__ __forceinline__ int lane_column() {
    const int lane = threadIdx.x % 32;
    return kSimt ? lane % 2 + lane / 16 * 2 : lane % 4;
  }
};

template <class Config>
using Layout = SumLayout<kElementBytes<Config>, Config::kSimt>;

// A factor's lines are along the sum, a line for each row or column of the result, or along the result, kDepth lines
// for each kDepth of its rows or columns.
enum class Major { kSum, kResult };

template <class Config>
struct Shared {
  unsigned char a[Config::kStages][Config::kBlockM * kLineBytes];
  unsigned char b[Config::kStages][Config::kBlockN * kLineBytes];
};

// Pieces of a line lie in another order in each, so that what a warp reads at once is in different banks: 16 bytes of
// eight lines below each other, or, of 32-bit elements, of eight lines four apart, or two pieces of four lines.
template <class Config, Major kMajor>
__device__ __forceinline__ u32 piece_address(u32 lines, int line, int piece) {
  constexpr bool kWide = kElementBytes<Config> == 4;
  const int key = !kWide ? line % 8 : kMajor == Major::kSum ? line / 4 % 8 : line % 4;
  return lines + line * kLineBytes + (piece ^ key) * kPieceBytes;
}

// The lines along the result that have a row or column of it.
template <class Config>
__device__ __forceinline__ u32 box_of(u32 boxes, int at) {
  return boxes + at / Config::kDepth * Config::kDepth * kLineBytes;
}

}  // namespace gemm
