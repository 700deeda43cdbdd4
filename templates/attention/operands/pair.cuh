// Operands of attention with an element for each pair: a bias, which is added to the dot products. Spec::Bias is
// printed from the instance's operands.
#pragma once
#include "common/ptx/ld_global.cuh"

// The bias of one head of one sequence. What is asked for outside of the sequence is 0 and not read.
template <class Spec, class Params>
class HeadBias {
 public:
  // `rows`: of the sequence. One that is longer than the launch says has no bias there.
  __device__ __forceinline__ HeadBias(const Params& params, int sequence, int head, int rows)
      : data_(Tensor::data(params) + sequence * Tensor::batch_stride(params) +
              head / (Spec::kHeads / Spec::Bias::kHeads) * Tensor::head_stride(params)),
        row_stride_(Tensor::row_stride(params)),
        rows_(min(rows, params.max_seq_len)) {}

  __device__ __forceinline__ float at(int row, int column) const {
    const bool valid = inside(row) && inside(column);
    if constexpr (Spec::kDtypeFp32) {
      return __uint_as_float(ld_global_nc_u32(address(row, column), valid));
    } else {
      return unpack_low<Spec::kDtypeBf16>(ld_global_nc_u16(address(row, column), valid));
    }
  }

  // 16-bit data of an accumulator fragment of 16 rows, as pairs: words[2 * i + half] is of row `row` + 8 * half and the
  // columns `column0` + 8 * i + 2 * (lane % 4) and the next. `column0` is even: see kEvenTiles.
  template <int kColumns>
  __device__ __forceinline__ void load_fragment(int row, int column0, u32 (&words)[kColumns / 4]) const {
    if (Spec::kAlignment >= 4 && column0 + kColumns <= rows_) {
      load_words<kColumns, true>(row, column0, words);
    } else {
      load_words<kColumns, false>(row, column0, words);
    }
  }

  // Adds the bias to such a fragment, of wgmma, in pieces of 16 columns: registers are short where this is called.
  template <int kColumns>
  __device__ __forceinline__ void add_fragment(int row, int column0, float (&scores)[kColumns / 2]) const {
    constexpr int kPieceColumns = 16;
#pragma unroll
    for (int first = 0; first < kColumns; first += kPieceColumns) {
      u32 words[kPieceColumns / 4];
      load_fragment<kPieceColumns>(row, column0 + first, words);
#pragma unroll
      for (int i = 0; i < kPieceColumns / 4; ++i) {
        scores[first / 2 + 2 * i] += unpack_low<Spec::kDtypeBf16>(words[i]);
        scores[first / 2 + 2 * i + 1] += unpack_high<Spec::kDtypeBf16>(words[i]);
      }
    }
  }

  // The same of a transposed fragment: element i is of row `row` + 8 * (i / 4) + (i & 1) and column `column`, or of the
  // one 8 further on.
  template <int kCount>
  __device__ __forceinline__ void add_transposed(int row, int column, float (&scores)[kCount]) const {
    Pointer row_address = address(row, column);
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
#pragma unroll
      for (int next = 0; next < 2; ++next) {
        const bool valid = inside(row + 2 * i + next);
        const Pointer element = row_address + next * row_stride_;
        scores[i + next] += unpack_low<Spec::kDtypeBf16>(ld_global_nc_u16(element, valid && inside(column)));
        scores[i + 2 + next] +=
            unpack_low<Spec::kDtypeBf16>(ld_global_nc_u16(element + 8, valid && inside(column + 8)));
      }
      row_address += 8 * row_stride_;
    }
  }

 private:
  using Tensor = typename Spec::Bias::Tensor;
  using Pointer = decltype(Tensor::data(Params()));

  __device__ __forceinline__ bool inside(int index) const { return static_cast<u32>(index) < static_cast<u32>(rows_); }
  __device__ __forceinline__ Pointer address(int row, int column) const { return data_ + (row * row_stride_ + column); }

  template <int kColumns, bool kFull>
  __device__ __forceinline__ void load_words(int row, int column0, u32 (&words)[kColumns / 4]) const {
    const int column = column0 + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool valid = inside(row + 8 * half);
      const Pointer row_address = address(row + 8 * half, column);
#pragma unroll
      for (int i = 0; i < kColumns / 8; ++i) {
        u32& word = words[2 * i + half];
        if constexpr (kFull) {
          word = ld_global_nc_u32(row_address + 8 * i, valid);
        } else {
          word = ld_global_nc_u16(row_address + 8 * i, valid && column + 8 * i < rows_) |
                 ld_global_nc_u16(row_address + 8 * i + 1, valid && column + 8 * i + 1 < rows_) << 16;
        }
      }
    }
  }

  const Pointer data_;  // of row 0 and column 0
  const i64 row_stride_;
  const int rows_;  // and columns
};
