// hstu_attention forward on Hopper: the shared memory of a CTA.
#pragma once
#include "common/jagged.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/schedule/pipeline.cuh"
#include "common/schedule/release.cuh"

namespace sm90 {

constexpr int kWarpgroup = 128;
constexpr int kWarpgroupRows = 64;  // rows of one wgmma

constexpr int kTailBoxRows = 16;  // rows of a box at the end of a sequence, and of one that a warp stores

// One row tile of one (sequence, head), as the producer describes it to the consumers.
struct TileInfo {
  i64 start;    // row of q and out that would hold the sequence's row 0
  int row0;     // first row of the tile, within the sequence
  int rows;     // n
#ifdef kSequenceCounts
  SequenceCounts targets;  // t
#elifdef kAttnFunc
  RowIntervals targets;  // in place of t
#else
  int targets;  // t
#endif
  int head;     // with kSplit, -1 until there is a tile
  int work;     // 0: no column is visible to these rows, the output is zero; else 1 or, with a bias, sequence() + 1
  int done;     // 1: no more tiles; the other members are unset

  __device__ __forceinline__ bool has_work() const { return work != 0; }
  __device__ __forceinline__ int sequence() const { return work - 1; }  // its number in the batch, with a bias
  __device__ __forceinline__ void set_sequence(int sequence) { work = sequence + 1; }
};

// A moving tile of the current tile: a KV tile, or a Q tile where the stationary tile has columns (backward).
struct MovingTileInfo {
  int row0;  // its first row of the operand, within the sequence
  int flags;

  static constexpr int kLast = 1 << 16;          // the tile's last one
  static constexpr int kFirstPartial = 1 << 17;  // of sums of several tiles: this one begins that of the Q tile,
  static constexpr int kLastPartial = 1 << 18;   // and this one ends it
  // Rows of consumer warpgroup `w` see some / all of its columns.
  static constexpr __device__ int visible(int w) { return 1 << w; }
  static constexpr __device__ int full(int w) { return 1 << (8 + w); }
};

// A V tile that reaches past its sequence: rows from `first_row` on must be zeroed before anybody multiplies by them.
struct TailInfo {
  int stage;  // < 0: no more tails
  int first_row;
};

// Bytes of one buffer.
template <class Config>
struct Tiles {
  static_assert(Config::kTailBoxRows == kTailBoxRows, "tail-box tensor maps have boxes of this many rows");
  static constexpr int kQueryBytes = Config::kQkTiles * Config::kBlockM * kSwizzleBytes;
  static constexpr int kKeyBytes = Config::kQkTiles * Config::kBlockN * kSwizzleBytes;
  static constexpr int kValueBytes = Config::kPvTiles * Config::kBlockN * kSwizzleBytes;
};

// Operand tiles are [64-column tile][row][64 columns], 128-byte swizzled, so every member before `q_full` is a multiple
// of 1024 bytes.
template <class Config>
struct Shared {
  unsigned char q[Config::kQueryStages][Tiles<Config>::kQueryBytes];
  unsigned char k[Config::kStages][Tiles<Config>::kKeyBytes];
  unsigned char v[Config::kStages][Tiles<Config>::kValueBytes];
  u64 q_full[Config::kQueryStages];
  u64 q_empty[Config::kQueryStages];
  u64 k_full[Config::kStages];
  u64 k_empty[Config::kStages];
  u64 v_full[Config::kStages];
  u64 v_empty[Config::kStages];
  u64 tail_full;
  u64 tail_empty;
  TileInfo tile[Config::kQueryStages];
  MovingTileInfo moving_tile[Config::kStages];
  TailInfo tail;
  int schedule_total;                                  // work tiles of the persistent schedule
  int schedule_sequences;                              // that have rows, where they are sorted
  int schedule_paired;                                 // a work tile is a pair of row tiles, where the mask allows
  u32 schedule_first[Config::kScheduleSequences + 1];  // work tiles before each entry of the list
  u16 schedule_order[Config::kScheduleSequences];      // sorted index -> sequence, longest first
};

// Named barriers of a CTA. Ids from kWarpSchedulerBarrier on: one for each consumer warpgroup, for ping-pong.
constexpr int kWithinWarpgroup = 1;  // and one more for each further consumer warpgroup
constexpr int kWarpSchedulerBarrier = 8;

// Whether outputs go through shared memory: over the q of their own tile, which is no longer needed and has the layout
// that the copy engine stores from.
template <class Config>
constexpr bool kStoreOverQuery = Config::kPvTiles <= Config::kQkTiles;

// Whether a warp of the producer's warpgroup zeroes V rows past the end of a sequence.
template <class Config>
constexpr bool kTailWarp = Config::kProducerRegisters != 0;

// Zeroes the rows from `first_row` on of an operand of kTiles tiles of kRows rows.
template <int kTiles, int kRows>
__device__ __forceinline__ void zero_operand_rows(unsigned char* operand, int first_row, int thread, int threads) {
  constexpr int kPiecesPerRow = kSwizzleBytes / 16;
#pragma unroll 1
  for (int i = first_row * kPiecesPerRow + thread; i < kRows * kPiecesPerRow; i += threads) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      reinterpret_cast<uint4*>(operand + tile * kRows * kSwizzleBytes)[i] = make_uint4(0, 0, 0, 0);
    }
  }
}

// Of a V tile: the rows belong to the next sequence, and their P is 0, but 0 * NaN is NaN.
template <class Config>
__device__ __forceinline__ void zero_rows(Shared<Config>& shared, int stage, int first_row, int thread, int threads) {
  zero_operand_rows<Config::kPvTiles, Config::kBlockN>(shared.v[stage], first_row, thread, threads);
}

// The first column of a tile's KV tiles, whose rows see columns from `begin` on. Pairs of the bias are at even columns.
template <class Config>
__device__ __forceinline__ int first_kv_column(int begin) {
#ifdef kDropout
  return begin & ~15;  // what is drawn is of 16 columns
#else
  return Config::kEvenTiles ? begin & ~1 : begin;
#endif
}

// With kSplit: how many CTAs of the cluster, the first ones, have some of the KV tiles of a tile, which go from
// first_kv_column of what its rows see to `end`.
template <class Config>
__device__ __forceinline__ int splits_of(int begin, int end) {
  return min(max(ceil_div(end - begin, Config::kBlockN), 0), static_cast<int>(cluster_blocks()));
}

}  // namespace sm90
