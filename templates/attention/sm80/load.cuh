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

// Calls visit(row, byte) for the pieces of a kRows x kBytes matrix that belong to this thread, always the same ones.
template <int kRows, int kBytes, int kPiece, int kThreads, class Visitor>
__device__ __forceinline__ void for_each_piece(Visitor&& visit) {
  constexpr int kPerRow = kBytes / kPiece;
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
    if constexpr (Config::kThreads % (kBytes / kPiece) == 0) {
      // A thread stays in its column. Nearly all tiles are whole: their pieces cost little more than the copy itself.
      if (rows >= kRows) {
        load_column<Tile, kRows, kBytes, true>(tile, source, stride, rows);
      } else {
        load_column<Tile, kRows, kBytes, false>(tile, source, stride, rows);
      }
    } else {
      for_each_piece<kRows, kBytes, kPiece, Config::kThreads>([&](int row, int byte) {
        load_piece(tile + Tile::offset(row, byte), source + row * stride + byte, row < rows);
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

  // The columns between the data and the end of a step, once for a tile that a CTA owns: loads never touch them.
  template <class Tile, int kRows, int kBytes>
  static __device__ __forceinline__ void zero_padding(u32 tile) {
    if constexpr (Tile::kRowBytes > kBytes) {
      static_assert(Tile::kRowBytes - kBytes == kPieceBytes, "one piece of padding");
      for (int row = threadIdx.x; row < kRows; row += Config::kThreads) {
        st_shared_uint4(tile + Tile::offset(row, kBytes), make_uint4(0, 0, 0, 0));
      }
    }
  }

  // kPiece bytes; zeroes, and nothing is read, where it is not valid.
  static __device__ __forceinline__ void load_piece(u32 destination, const char* piece, bool valid) {
    if constexpr (kAlignment >= 4) {
      cp_async<kPiece>(destination, piece, valid);
    } else {
      st_shared_uint4(destination, valid ? gather(piece) : make_uint4(0, 0, 0, 0));
    }
  }

 private:
  template <class Tile, int kRows, int kBytes, bool kFull>
  static __device__ __forceinline__ void load_column(u32 tile, const char* source, i64 stride, int rows) {
    constexpr int kPerRow = kBytes / kPiece, kStep = Config::kThreads / kPerRow;
    const int row0 = static_cast<int>(threadIdx.x) / kPerRow, byte = static_cast<int>(threadIdx.x) % kPerRow * kPiece;
    const char* piece = source + row0 * stride + byte;
#pragma unroll
    for (int i = 0; i < ceil_div(kRows, kStep); ++i) {
      const int row = row0 + i * kStep;
      if (kRows % kStep != 0 && row >= kRows) return;
      load_piece(tile + Tile::offset(row, byte), piece, kFull || row < rows);
      piece += kStep * stride;
    }
  }

  // Eight 16-bit elements without any alignment beyond their own.
  static __device__ __forceinline__ uint4 gather(const char* piece) {
    const u16* elements = reinterpret_cast<const u16*>(piece);
    u32 words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = static_cast<u32>(elements[2 * i]) | static_cast<u32>(elements[2 * i + 1]) << 16;
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
};

}  // namespace sm80
