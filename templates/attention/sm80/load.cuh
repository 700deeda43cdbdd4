// hstu_attention on Ampere and Ada: rows of one head from global into swizzled shared memory.
//
// Only the head's own columns are read. Rows at and past `rows` are not read and become zero: whatever lies there
// belongs to another sequence, and even multiplied by a zero it could leave a NaN.
#pragma once
#include "attention/sm80/shared.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/ldst_shared.cuh"
#include "common/ptx/mma.cuh"

namespace sm80 {

// Calls visit(row, byte) for the pieces of a kRows x kBytes matrix that belong to this thread, always the same ones. A
// row's last piece may be longer than what is left of it.
template <int kRows, int kBytes, int kPiece, int kThreads, class Visitor>
__device__ __forceinline__ void for_each_piece(Visitor&& visit) {
  constexpr int kPerRow = ceil_div(kBytes, kPiece);
  constexpr int kPieces = kRows * kPerRow;
#pragma unroll
  for (int i = 0; i < ceil_div(kPieces, kThreads); ++i) {
    const int piece = i * kThreads + threadIdx.x;
    if (kPieces % kThreads != 0 && piece >= kPieces) return;
    if constexpr (kThreads % kPerRow == 0) {
      // The column is the same every time, and rows advance by a constant.
      visit(static_cast<int>(threadIdx.x) / kPerRow + i * (kThreads / kPerRow),
            static_cast<int>(threadIdx.x) % kPerRow * kPiece);
    } else {
      visit(piece / kPerRow, piece % kPerRow * kPiece);
    }
  }
}

template <class Spec, class Config>
class Loader {
 public:
  using S = Shape<Spec, Config>;

  // Elements are aligned to their own size whatever the spec promises.
  static constexpr int kAlignment = Spec::kAlignment > S::kElementBytes ? Spec::kAlignment : S::kElementBytes;
  static constexpr int kPiece = kAlignment >= 4 ? kAlignment : kPieceBytes;

  // `source`: the tile's first row, in bytes; `stride`: bytes between rows. Completes with the thread's copy group.
  template <class Tile, int kRows, int kBytes>
  static __device__ __forceinline__ void load(u32 tile, const char* source, i64 stride, int rows) {
    if constexpr (Config::kThreads % ceil_div(kBytes, kPiece) == 0) {
      // A thread stays in its column. Nearly all tiles are whole: their pieces cost little more than the copy itself.
      if (rows >= kRows) {
        load_column<Tile, kRows, kBytes, true>(tile, source, stride, rows);
      } else {
        load_column<Tile, kRows, kBytes, false>(tile, source, stride, rows);
      }
    } else {
      for_each_piece<kRows, kBytes, kPiece, Config::kThreads>([&](int row, int byte) {
        load_piece(tile + Tile::offset(row, byte), source + row * stride + byte, row < rows, bytes_left<kBytes>(byte));
      });
    }
  }

  // Rounds the pieces that this thread loaded, after they have arrived and before others may read them.
  template <class Tile, int kRows, int kBytes>
  static __device__ __forceinline__ void round(u32 tile) {
    if constexpr (S::kProduct == Product::kTf32) {
      for_each_piece<kRows, kBytes, kPiece, Config::kThreads>([&](int row, int byte) {
        const u32 piece = tile + Tile::offset(row, byte);
        if constexpr (kPiece == 16) {
          const float4 x = ld_shared_float4(piece);
          st_shared_uint4(piece,
                          make_uint4(cvt_rna_tf32(x.x), cvt_rna_tf32(x.y), cvt_rna_tf32(x.z), cvt_rna_tf32(x.w)));
        } else {
#pragma unroll
          for (int i = 0; i < kPiece; i += 4)
            st_shared_u32(piece + i, cvt_rna_tf32(__uint_as_float(ld_shared_u32(piece + i))));
        }
      });
    }
  }

  // The bytes between the data and the end of a step, once for a tile that a CTA owns: loads never touch them.
  template <class Tile, int kRows, int kBytes>
  static __device__ __forceinline__ void zero_padding(u32 tile) {
    constexpr int kLoaded = ceil_div(kBytes, kPiece) * kPiece;
    if constexpr (Tile::kRowBytes > kLoaded) {
      for (int row = threadIdx.x; row < kRows; row += Config::kThreads) {
        if constexpr (kLoaded % kPieceBytes == 0) {
          static_assert(Tile::kRowBytes - kLoaded == kPieceBytes, "one piece of padding");
          st_shared_uint4(tile + Tile::offset(row, kLoaded), make_uint4(0, 0, 0, 0));
        } else {
          for (int byte = kLoaded; byte < Tile::kRowBytes; byte += 4) st_shared_u32(tile + Tile::offset(row, byte), 0);
        }
      }
    }
  }

  // Bytes of a row of kBytes from `byte` on, which a piece may be longer than; a constant where none is.
  template <int kBytes>
  static __device__ __forceinline__ int bytes_left(int byte) {
    return kBytes % kPiece == 0 ? kPiece : kBytes - byte;
  }

  // kPiece bytes; zeroes, and nothing is read, where it is not valid, nor from `bytes` on. Pieces that are copied
  // without a register are never longer: the canonical `alignment` divides a head's bytes.
  static __device__ __forceinline__ void load_piece(u32 destination, const char* piece, bool valid, int bytes) {
    if constexpr (kAlignment >= 4) {
      cp_async<kPiece>(destination, piece, valid);
    } else {
      st_shared_uint4(destination, valid ? gather(piece, bytes) : make_uint4(0, 0, 0, 0));
    }
  }

 private:
  template <class Tile, int kRows, int kBytes, bool kFull>
  static __device__ __forceinline__ void load_column(u32 tile, const char* source, i64 stride, int rows) {
    constexpr int kPerRow = ceil_div(kBytes, kPiece), kStep = Config::kThreads / kPerRow;
    const int row0 = static_cast<int>(threadIdx.x) / kPerRow, byte = static_cast<int>(threadIdx.x) % kPerRow * kPiece;
    const char* piece = source + row0 * stride + byte;
#pragma unroll
    for (int i = 0; i < ceil_div(kRows, kStep); ++i) {
      const int row = row0 + i * kStep;
      if (kRows % kStep != 0 && row >= kRows) return;
      load_piece(tile + Tile::offset(row, byte), piece, kFull || row < rows, bytes_left<kBytes>(byte));
      piece += kStep * stride;
    }
  }

  // Eight 16-bit elements without any alignment beyond their own, of which those within `bytes` are read.
  static __device__ __forceinline__ uint4 gather(const char* piece, int bytes) {
    const u16* elements = reinterpret_cast<const u16*>(piece);
    const auto element = [=](int i) { return 2 * i < bytes ? static_cast<u32>(elements[i]) : 0u; };
    u32 words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = element(2 * i) | element(2 * i + 1) << 16;
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
};

}  // namespace sm80
