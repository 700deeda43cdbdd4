// Attention, with kPackSequences: the rows of a packed tile, as its producer describes them to its consumer.
//
// A packed tile has kBlockM neighbouring rows of the tensors, of as many sequences as they belong to: its mask is
// block-diagonal, and within a block the one of that sequence. Rows and columns of the tile are those of the tensors;
// the mask and the score are asked by row and column of a sequence, which each row knows the first row of.
#pragma once
#include "common/ptx/fma_x2.cuh"

namespace sm90 {

// The sequence of one row of a tile. Of a row that no sequence has, `rows` is 0: it sees nothing.
struct __align__(16) PackedRow {
  int start;  // the sequence's first row in the tensors
  int rows;   // n
#ifdef kSequenceCounts
  SequenceCounts targets;
#elifdef kAttnFunc
  RowIntervals targets;
#else
  int targets;
#endif
};

// Beside TileInfo, whose `start` is 0 and whose `rows` ends the rows of the tensors that sequences have.
template <class Config>
struct PackedTile {
  PackedRow rows[Config::kBlockM];
  int moving_end;  // behind the last row or column that moving tiles have for this tile
  int mixed;       // 1: its rows are of several sequences
  int not_finite;  // 1: something that is not finite was left out of the products; set by the consumer
};

// A kernel's shared memory with as many packed tiles as are in flight, and that of a kernel which may have none.
template <class Base, class Config, int kTiles>
struct PackedSharedOf : Base {
  PackedTile<Config> packed_tile[kTiles];
};
template <class Base, class Config, int kTiles, bool kPacked = Config::kPackSequences != 0>
struct KernelSharedOf {
  using Type = Base;
};
template <class Base, class Config, int kTiles>
struct KernelSharedOf<Base, Config, kTiles, true> {
  using Type = PackedSharedOf<Base, Config, kTiles>;
};

// Bits of infinity as a 16-bit float, and the smallest NaN is above it.
template <bool kBf16>
constexpr u32 kInfinityBits = kBf16 ? 0x7f80 : 0x7c00;

template <bool kBf16>
__device__ __forceinline__ bool is_finite_16bit(u32 bits) {
  return (bits & 0x7fff) < kInfinityBits<kBf16>;
}

template <bool kBf16>
__device__ __forceinline__ u32 finite_or_zero(u32 word) {
  const u32 low = is_finite_16bit<kBf16>(word) ? word & 0xffff : 0;
  return low | (is_finite_16bit<kBf16>(word >> 16) ? word & ~0xffffu : 0);
}

// Puts 0 in place of what is not finite in the first `rows` rows of an operand of kTiles tiles of kRows rows; whether
// this thread found any. Of a tile of several sequences one must not bring what it holds to the others: their weights
// of it are 0, but 0 * NaN is NaN.
template <bool kBf16, int kTiles, int kRows>
__device__ __forceinline__ bool replace_not_finite(unsigned char* operand, int rows, int thread, int threads) {
  constexpr int kPiecesPerRow = kSwizzleBytes / 16;
  bool found = false;
#pragma unroll 1
  for (int i = thread; i < min(rows, kRows) * kPiecesPerRow; i += threads) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      uint4& piece = reinterpret_cast<uint4*>(operand + tile * kRows * kSwizzleBytes)[i];
      const uint4 words = piece;
      // 0 of finite numbers, else NaN.
      u32 sum = fma_x2<kBf16>(words.x, 0, 0);
      sum = fma_x2<kBf16>(words.y, 0, sum);
      sum = fma_x2<kBf16>(words.z, 0, sum);
      sum = fma_x2<kBf16>(words.w, 0, sum);
      if ((sum & 0x7fff7fff) == 0) continue;
      piece = make_uint4(finite_or_zero<kBf16>(words.x), finite_or_zero<kBf16>(words.y),
                         finite_or_zero<kBf16>(words.z), finite_or_zero<kBf16>(words.w));
      found = true;
    }
  }
  return found;
}

// NaN into those of a thread's sums of one row, of which other rows of its sequence that `sees` says yes to have
// something that is not finite in `values`. The sums are i + 4 * k and the next, of columns 8 * k + 2 * (lane % 4) and
// the next; `values` is the sequence's first row of the head.
template <bool kBf16, int kCount, class Sees>
__device__ __forceinline__ void restore_not_finite(const u16* values, i64 row_stride, int rows, int i,
                                                   const Sees& sees, float (&sums)[kCount]) {
  values += threadIdx.x % 4 * 2;
#pragma unroll 1
  for (int row = 0; row < rows; ++row, values += row_stride) {
    if (!sees(row)) continue;
#pragma unroll
    for (int k = 0; k < kCount / 4; ++k) {
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        const bool finite = is_finite_16bit<kBf16>(__ldg(values + 8 * k + next));
        float& sum = sums[4 * k + i + next];
        if (!finite) sum = __uint_as_float(0x7fffffff);
      }
    }
  }
}

}  // namespace sm90
