// hstu_attention forward on Hopper, with kPackSequences: what a consumer knows of the rows of a packed tile.
//
// A packed tile has kBlockM neighbouring rows of the tensors, of as many sequences as they belong to: its mask is
// block-diagonal, and within a block the one of that sequence. Rows and columns of the tile are those of the tensors;
// the mask and the score are asked by row and column of a sequence, which each row knows the first row of.
#pragma once
#include "attention/sm90_forward/shared.cuh"
#include "common/ptx/fma_x2.cuh"
#include "common/regions.cuh"

namespace sm90 {

// The sequence of one row of a tile. Of a row that no sequence has, `rows` is 0: it sees nothing.
struct __align__(16) PackedRow {
  int start;  // the sequence's first row in the tensors
  int rows;   // n
  int targets;
};

// A tile, as the producer describes it beside TileInfo, whose `start` is 0 and whose `rows` ends the columns that its
// rows see.
template <class Config>
struct PackedTile {
  PackedRow rows[Config::kBlockM];
  int row_end;     // rows of the tensors that sequences have
  int mixed;       // 1: its rows are of several sequences
  int not_finite;  // 1: some value of V that the products skipped is not finite; set by the consumer
};

template <class Config>
struct PackedShared : Shared<Config> {
  PackedTile<Config> packed_tile[Config::kQueryStages];
};

template <class Config, bool kPacked = Config::kPackSequences != 0>
struct KernelShared {
  using Type = Shared<Config>;
};
template <class Config>
struct KernelShared<Config, true> {
  using Type = PackedShared<Config>;
};

template <class Config>
__device__ __forceinline__ PackedTile<Config>& packed_tile_of(Shared<Config>& shared, int stage) {
  return static_cast<PackedShared<Config>&>(shared).packed_tile[stage];
}

// Of 16-bit floats: infinity, and the smallest NaN is above it.
template <bool kBf16>
constexpr u32 kInfinityBits = kBf16 ? 0x7f80 : 0x7c00;

template <bool kBf16>
__device__ __forceinline__ bool is_finite_16bit(u32 bits) {
  return (bits & 0x7fff) < kInfinityBits<kBf16>;
}

template <bool kBf16>
__device__ __forceinline__ u32 finite_or_zero(u32 word) {
  return (is_finite_16bit<kBf16>(word) ? word & 0xffff : 0) | (is_finite_16bit<kBf16>(word >> 16) ? word & ~0xffffu : 0);
}

// Puts 0 in place of what is not finite in the first `rows` rows of a V tile; whether this thread found any.
template <class Spec, class Config>
__device__ __forceinline__ bool replace_not_finite(unsigned char* values, int rows, int thread, int threads) {
  constexpr bool kBf16 = Spec::kDtypeBf16;
  constexpr int kPiecesPerRow = kSwizzleBytes / 16;
  bool found = false;
#pragma unroll 1
  for (int i = thread; i < rows * kPiecesPerRow; i += threads) {
#pragma unroll
    for (int tile = 0; tile < Config::kPvTiles; ++tile) {
      uint4& piece = reinterpret_cast<uint4*>(values + tile * Config::kBlockN * kSwizzleBytes)[i];
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

// Before a V tile is multiplied by the weights of all rows of the tile: 0 * NaN is NaN. Its rows from `rows` on, which
// no row sees, are zeroed. Where the tile has rows of several sequences, one must not bring what it holds to the others
// either: what is not finite is 0 in the product, and a row that sees it is given NaN at the end. By a warpgroup.
template <class Spec, class Config>
__device__ __forceinline__ void clean_values(Shared<Config>& shared, PackedTile<Config>& tile, int stage, int rows) {
  const bool mixed = tile.mixed;
  if (!mixed && rows >= Config::kBlockN) return;
  const int thread = threadIdx.x % kWarpgroup;
  zero_rows(shared, stage, rows, thread, kWarpgroup);
  if (mixed && replace_not_finite<Spec, Config>(shared.v[stage], min(rows, Config::kBlockN), thread, kWarpgroup)) {
    tile.not_finite = 1;
  }
  fence_proxy_async();
  named_barrier_sync(kWithinWarpgroup, kWarpgroup);
}

// NaN into the sums of the thread's fragment whose row sees a value that is not finite. `row` is the thread's first one
// within the tile, `row0` that of the tile.
template <class Spec, class Config, class Params, int kCount>
__device__ __forceinline__ void restore_not_finite(const Params& params, const PackedTile<Config>& tile, int row0,
                                                   int row, int head, float (&sums)[kCount]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const PackedRow of = tile.rows[row + 8 * half];
    const int own = row0 + row + 8 * half - of.start;
#pragma unroll 1
    for (int column = 0; column < of.rows; ++column) {
      if (!mask_valid(own, column, of.rows, of.targets)) continue;
      const u16* values = params.v + (i64{of.start} + column) * params.v_row_stride + head * params.v_head_stride +
                          threadIdx.x % 4 * 2;
#pragma unroll
      for (int i = 2 * half; i < kCount; i += 4) {
#pragma unroll
        for (int next = 0; next < 2; ++next) {
          if (!is_finite_16bit<Spec::kDtypeBf16>(__ldg(values + i / 4 * 8 + next))) {
            sums[i + next] = __uint_as_float(0x7fffffff);
          }
        }
      }
    }
  }
}

// A piece of a KV tile, of the columns [column0, column1], as the rows [row0, row1] of a warp see it, which are of the
// sequences from `first`'s to `last`'s.
__device__ __forceinline__ void packed_piece(const PackedRow& first, const PackedRow& last, int row0, int row1,
                                             int column0, int column1, bool& full, bool& visible) {
  full = false;
  visible = row0 <= row1 && column1 >= first.start && column0 < last.start + last.rows;
  if (first.start != last.start || !visible) return;
  const int start = first.start;
  mask_tile(row0 - start, row1 - start, column0 - start, column1 - start, first.rows, first.targets, full, visible);
  full = full && column0 >= start;
}

}  // namespace sm90
