// Both factors of a stage, from global to shared memory, by all threads of the CTA.
#pragma once
#include "common/ptx/ldst_shared.cuh"
#include "gemm/sm80/shared.cuh"

namespace gemm {

// A piece of `count` elements and zeros behind them, from a row that begins at a multiple of kAlignment bytes: as
// copies of so many, or element by element, which no copy takes.
template <int kAlignment, class Element>
__device__ __forceinline__ void load_piece(u32 to, const Element* from, int count) {
  if constexpr (kAlignment >= 4) {
    constexpr int kCopied = kAlignment / static_cast<int>(sizeof(Element));
#pragma unroll
    for (int i = 0; i < kPieceBytes / kAlignment; ++i) {
      const bool valid = i * kCopied < count;
      cp_async<kAlignment>(to + i * kAlignment, valid ? from + i * kCopied : from, valid);
    }
  } else {
    const u16* const elements = reinterpret_cast<const u16*>(from);
    const auto element = [=](int i) { return i < count ? static_cast<u32>(elements[i]) : 0u; };
    st_shared_uint4(to, make_uint4(element(0) | element(1) << 16, element(2) | element(3) << 16,
                                   element(4) | element(5) << 16, element(6) | element(7) << 16));
  }
}

// A box of a matrix whose rows begin at multiples of kAlignment bytes: kRows rows of kLines lines; what lies outside is
// 0.
template <class Config, Major kMajor, int kRows, int kLines, int kAlignment, class Element>
__device__ __forceinline__ void load_box(u32 to, const Element* data, i64 stride, i64 row, i64 rows, i64 column,
                                         i64 columns) {
  constexpr int kThreads = WarpTile<Config>::kThreads, kPieces = kLines * kLinePieces;
  static_assert(kRows * kPieces % kThreads == 0, "threads share out the pieces evenly");
  static_assert(sizeof(Element) == kElementBytes<Config>, "a line is as deep as a stage");
  // Elements that are loaded one by one are in registers until they are stored.
  constexpr int kTogether = kAlignment == kPieceBytes ? kRows * kPieces / kThreads : 2;
#pragma unroll kTogether
  for (int first = 0; first < kRows * kPieces; first += kThreads) {
    const int at = first + threadIdx.x;
    const int line = at / kPieces, piece = at % kPieces;
    const i64 from_row = row + line, from_column = column + piece * kPieceElements<Config>;
    const bool valid = from_row < rows && from_column < columns;
    const u32 lines = to + piece / kLinePieces * kRows * kLineBytes;
    const u32 address = piece_address<Config, kMajor>(lines, line, piece % kLinePieces);
    const Element* const from = valid ? data + from_row * stride + from_column : data;
    if constexpr (kAlignment == kPieceBytes) {
      cp_async<kPieceBytes>(address, from, valid);
    } else {
      const i64 left = columns - from_column;
      const int count = left < kPieceElements<Config> ? static_cast<int>(left) : kPieceElements<Config>;
      load_piece<kAlignment>(address, from, valid ? count : 0);
    }
  }
}

template <class Config, class Params>
__device__ __forceinline__ void load_stage(Shared<Config>& shared, const Params& params, const WorkTile& tile,
                                           int stage, i64 depth) {
  constexpr int kDepth = Config::kDepth;
  const u32 a = shared_address(shared.a[stage]), b = shared_address(shared.b[stage]);
  // Rows of the sequence for a sum over them; the tile's for a matrix of each sequence.
  const i64 begin = kSumsOfSequences<Config> ? tile.rows_begin : 0, at = begin + depth * kDepth;
  const i64 end = kSumsOfSequences<Config> ? tile.rows_end : params.depth;
  auto columns = params.b;
  if constexpr (kRowsOfSequences<Config>) columns += tile.sequence * params.b_sequence_stride;
  if constexpr (Config::kATransposed) {
    load_box<Config, Major::kResult, kDepth, Config::kBlockM / kDepth, Config::kAAlignment>(
        a, params.a, params.a_stride, at, end, tile.row, params.rows);
  } else {
    load_box<Config, Major::kSum, Config::kBlockM, 1, Config::kAAlignment>(a, params.a, params.a_stride, tile.row,
                                                                           params.rows, at, end);
  }
  if constexpr (Config::kBTransposed) {
    load_box<Config, Major::kSum, Config::kBlockN, 1, Config::kBAlignment>(b, columns, params.b_stride, tile.column,
                                                                           Config::kColumns, at, end);
  } else {
    load_box<Config, Major::kResult, kDepth, Config::kBlockN / kDepth, Config::kBAlignment>(
        b, columns, params.b_stride, at, end, tile.column, Config::kColumns);
  }
}

}  // namespace gemm
