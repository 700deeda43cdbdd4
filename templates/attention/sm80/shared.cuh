// hstu_attention on Ampere and Ada: shared memory of a CTA, and the shapes that follow from Spec and Config.
#pragma once
#include "common/types.cuh"

namespace sm80 {

constexpr int kPieceBytes = 16;      // unit of the swizzle, and of ldmatrix rows
constexpr int kPieceStepBytes = 32;  // of an operand row: one step of a matrix instruction

constexpr __host__ __device__ int trailing_zeros(int x, int limit) {
  int zeros = 0;
  while (zeros < limit && (x >> zeros) % 2 == 0) ++zeros;
  return zeros;
}

// A matrix in shared memory, rows of kRowBytes without padding. Eight (kPairs: four) consecutive rows hold the same
// column in different banks: pieces of 16 (32) bytes are exchanged within aligned groups as large as the row's size
// allows. `Lane` is the part of an address that a thread computes once; at() adds compile-time constants to it.
template <int kRowBytes_, bool kPairs>
struct Tile {
  static constexpr int kRowBytes = kRowBytes_;
  static constexpr int kUnitBytes = kPairs ? 2 * kPieceBytes : kPieceBytes;
  static constexpr int kRowBits = kPairs ? 2 : 3;
  static constexpr int kBits = trailing_zeros(kRowBytes / kUnitBytes, kRowBits);
  static constexpr int kMask = ((1 << kBits) - 1) * kUnitBytes;
  static_assert(kRowBytes % kUnitBytes == 0, "rows are whole pieces");

  static __device__ __forceinline__ u32 swizzle(int row) {
    return static_cast<u32>((row >> (kRowBits - kBits) & ((1 << kBits) - 1)) * kUnitBytes);
  }

  // Byte offset of a byte within a row.
  static __device__ __forceinline__ u32 offset(int row, int byte) { return row * kRowBytes + (byte ^ swizzle(row)); }

  struct Lane {
    u32 row;     // byte offset of the thread's row
    u32 column;  // byte within the row, swizzled
  };

  // `byte` is below the step between the columns that at() is called with.
  static __device__ __forceinline__ Lane lane(int row, int byte) {
    return {static_cast<u32>(row * kRowBytes), static_cast<u32>(byte) ^ swizzle(row)};
  }

  // `row_step` rows (a multiple of 8) and `byte` columns (a multiple of 32) away from the lane's place.
  static __device__ __forceinline__ u32 at(u32 tile, const Lane& lane, int row_step, int byte) {
    return tile + lane.row + (lane.column ^ (byte & kMask)) + (byte & ~kMask) + row_step * kRowBytes;
  }
};

enum class Product { kBf16, kFp16, kTf32, kIeee };

template <class Spec, class Config>
struct Shape {
  static constexpr Product kProduct = Spec::kDtypeBf16       ? Product::kBf16
                                      : !Spec::kDtypeFp32    ? Product::kFp16
                                      : Spec::kPrecisionIeee ? Product::kIeee
                                                             : Product::kTf32;
  static constexpr int kElementBytes = Spec::kDtypeFp32 ? 4 : 2;
  static constexpr int kQkBytes = Spec::kAttnDim * kElementBytes;  // of a row of q and k in global memory
  static constexpr int kVBytes = Spec::kHiddenDim * kElementBytes;
  static constexpr int kOutputColumns = Spec::kHiddenDim;
  static constexpr int kOutputTiles = ceil_div(kOutputColumns, 8);  // fragments of these
  static constexpr int kQkSteps = ceil_div(kQkBytes, kPieceStepBytes);

  using QkTile = Tile<kQkSteps * kPieceStepBytes, false>;
  using VTile = Tile<kOutputTiles * 8 * kElementBytes, kProduct == Product::kTf32>;

  static constexpr bool kQueryInRegisters = Config::kQueryInRegisters;
  static constexpr int kWarpRows = Config::kBlockM / Config::kWarps;
  static constexpr int kRowTiles = kWarpRows / 16;               // fragments of a warp's rows
  static constexpr int kScoreTiles = Config::kChunkColumns / 8;  // of a chunk's columns
  static constexpr int kChunks = Config::kBlockN / Config::kChunkColumns;
  static_assert(kWarpRows % 16 == 0 && Config::kChunkColumns % 16 == 0 &&
                    kChunks * Config::kChunkColumns == Config::kBlockN,
                "warps own whole fragments");

  using Scores = float[kRowTiles][kScoreTiles][4];
  using Outputs = float[kRowTiles][kOutputTiles][4];
};

// Rows of q and k end with zeros up to a whole step. Rows of v end with anything up to a whole fragment, which only
// reaches columns of the output that are not stored.
template <class Spec, class Config>
struct Shared {
  using S = Shape<Spec, Config>;
  struct Stage {
    unsigned char k[Config::kBlockN * S::QkTile::kRowBytes];
    unsigned char v[Config::kBlockN * S::VTile::kRowBytes];
  };
  unsigned char q[Config::kBlockM * S::QkTile::kRowBytes];
  Stage stage[Config::kStages];
};

}  // namespace sm80
