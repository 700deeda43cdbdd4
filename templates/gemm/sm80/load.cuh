// Both factors of a stage, from global to shared memory, by all threads of the CTA.
#pragma once
#include "gemm/sm80/shared.cuh"

namespace gemm {

// A box of a matrix: kRows rows of kLines lines; what lies outside is 0.
template <class Config, Major kMajor, int kRows, int kLines, class Element>
__device__ __forceinline__ void load_box(u32 to, const Element* data, i64 stride, i64 row, i64 rows, i64 column,
                                         i64 columns) {
  constexpr int kThreads = WarpTile<Config>::kThreads, kPieces = kLines * kLinePieces;
  static_assert(kRows * kPieces % kThreads == 0, "threads share out the pieces evenly");
  static_assert(sizeof(Element) == kElementBytes<Config>, "a line is as deep as a stage");
#pragma unroll
  for (int first = 0; first < kRows * kPieces; first += kThreads) {
    const int at = first + threadIdx.x;
    const int line = at / kPieces, piece = at % kPieces;
    const i64 from_row = row + line, from_column = column + piece * kPieceElements<Config>;
    const bool valid = from_row < rows && from_column < columns;
    const u32 lines = to + piece / kLinePieces * kRows * kLineBytes;
    cp_async<kPieceBytes>(piece_address<Config, kMajor>(lines, line, piece % kLinePieces),
                          valid ? data + from_row * stride + from_column : data, valid);
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
    load_box<Config, Major::kResult, kDepth, Config::kBlockM / kDepth>(a, params.a, params.a_stride, at, end, tile.row,
                                                                       params.rows);
  } else {
    load_box<Config, Major::kSum, Config::kBlockM, 1>(a, params.a, params.a_stride, tile.row, params.rows, at, end);
  }
  if constexpr (Config::kBTransposed) {
    load_box<Config, Major::kSum, Config::kBlockN, 1>(b, columns, params.b_stride, tile.column, Config::kColumns, at,
                                                      end);
  } else {
    load_box<Config, Major::kResult, kDepth, Config::kBlockN / kDepth>(b, columns, params.b_stride, at, end,
                                                                       tile.column, Config::kColumns);
  }
}

}  // namespace gemm
