// A bias in shared memory: a tile of rows and columns, loaded by one warp, with which accumulators of S begin.
#pragma once
#include "common/pack.cuh"
#include "common/ptx/cp_async_arrive.cuh"
#include "common/ptx/mma.cuh"
#include "common/ptx/wgmma.cuh"

namespace sm90::backward {

// Where a tile of the bias begins, within a sequence of the batch that has `rows` rows.
struct BiasPlace {
  int sequence, head;
  int row0, column0;
  int rows;
};

// Begins to load a tile, in blocks of 64 columns with the 128-byte swizzle, and arrives on `full` when it is there.
// Elements outside of the sequence are 0 and not read. One warp; rows are aligned to 16 bytes, as tensor maps ask.
template <int kRows, int kColumns, class Spec, class Params>
__device__ __forceinline__ void load_bias_tile(const Params& params, const BiasPlace& place, u32 shared, u64& full) {
  using Tensor = typename Spec::Bias::Tensor;
  constexpr int kPiece = 8;  // columns of 16 bytes
  constexpr int kPieces = kColumns / kPiece, kBlockPieces = kSwizzleBytes / 16;
  constexpr int kRowsAtOnce = 32 / kPieces;
  const int lane = static_cast<int>(threadIdx.x) % 32, piece = lane % kPieces, column = place.column0 + piece * kPiece;
  // A sequence that is longer than the launch says has no bias there.
  const int size = min(place.rows, params.max_seq_len), rows = size - place.row0;
  const u32 bytes = static_cast<u32>(min(max(size - column, 0), kPiece)) * sizeof(u16);
  const i64 row_stride = Tensor::row_stride(params);
  const u16* const tensor = Tensor::data(params) + place.sequence * Tensor::batch_stride(params) +
                            place.head / (Spec::kHeads / Spec::Bias::kHeads) * Tensor::head_stride(params);
  const u16* source = tensor + ((place.row0 + lane / kPieces) * row_stride + column);
  const u32 block = shared + piece / kBlockPieces * (kRows * kSwizzleBytes);
#pragma unroll 4
  for (int row = lane / kPieces; row < kRows; row += kRowsAtOnce) {
    const u32 present = row < rows ? bytes : 0;
    cp_async_first_bytes(block + row * kSwizzleBytes + (piece ^ row) % kBlockPieces * 16, present > 0 ? source : tensor,
                         present);
    source += kRowsAtOnce * row_stride;
  }
  cp_async_arrive(shared_address(&full));
}

// The bias of a thread's accumulators of S, of the warp's 16 rows, which are from `rows` on in the tile's first block;
// blocks are `block_bytes` apart.
template <class Spec, int kCount>
__device__ __forceinline__ void begin_with_bias(u32 rows, int block_bytes, float (&scores)[kCount]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const u32 row = rows + lane % 16 * kSwizzleBytes;
  const int swizzle = lane / 16 ^ lane % 8;
#pragma unroll
  for (int i = 0; i < kCount; i += 8) {
    const int group = i / 4;  // of 8 columns
    u32 words[4];
    ldmatrix_x4(words, row + group / 8 * block_bytes + (swizzle ^ group % 8) * 16);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      scores[i + 2 * j] = unpack_low<Spec::kDtypeBf16>(words[j]);
      scores[i + 2 * j + 1] = unpack_high<Spec::kDtypeBf16>(words[j]);
    }
  }
}

// The same of accumulators of S^T, of the warp's 16 columns from `column` on of a block, and of all the tile's rows.
template <class Spec, int kCount>
__device__ __forceinline__ void begin_transposed_with_bias(u32 block, int column, float (&scores)[kCount]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane % 8, piece = column / 8 + lane / 8 % 2;
  const u32 address = block + (lane / 16 * 8 + row) * kSwizzleBytes + (piece ^ row) * 16;
#pragma unroll
  for (int i = 0; i < kCount; i += 8) {
    u32 words[4];
    ldmatrix_x4_trans(words, address + i * 2 * kSwizzleBytes);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      scores[i + 2 * j] = unpack_low<Spec::kDtypeBf16>(words[j]);
      scores[i + 2 * j + 1] = unpack_high<Spec::kDtypeBf16>(words[j]);
    }
  }
}

}  // namespace sm90::backward
