// The attention operators: the bias of a pair (rab) and the factor of a row (attn_scale), where the instance has them.
#pragma once
#include "common/ptx/ld_global.cuh"

// The bias of one head of one sequence. What is asked for outside of the sequence is 0 and not read.
template <class Spec, class Params>
class HeadBias {
 public:
  // `rows`: of the sequence. One that is longer than the launch says has no bias there.
  __device__ __forceinline__ HeadBias(const Params& params, int sequence, int head, int rows)
      : data_(params.rab + sequence * params.rab_batch_stride +
              head / (Spec::kHeads / Spec::kRabHeads) * params.rab_head_stride),
        row_stride_(params.rab_row_stride),
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
  using Pointer = decltype(Params().rab);

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

// What sums are multiplied by that are not of one row: 1 where each row has a factor of its own, which was then
// multiplied into what was added up.
template <class Spec, class Params>
__device__ __forceinline__ float common_factor(const Params& params) {
  if constexpr (Spec::kAttnScaleNone) {
    return params.inverse_scale;
  } else if constexpr (Spec::kAttnScaleScalar) {
    return __ldg(params.attn_scale);
  } else {
    return 1.0f;
  }
}

// The factors of a sequence's rows of q, where each has its own.
template <class Params>
class RowFactors {
 public:
  // Of a sequence of `rows` rows, whose first is row `start` of the tensor.
  __device__ __forceinline__ RowFactors(const Params& params, i64 start, int rows)
      : first_(params.attn_scale + start), rows_(rows) {}

  // 0, and not read, of rows past the end.
  __device__ __forceinline__ float of(int row) const { return row < rows_ ? __ldg(first_ + row) : 0.0f; }

  // Of `row` and the next, loaded where this is called: what uses them is short of registers.
  __device__ __forceinline__ float2 pair(int row) const { return make_float2(load(row), load(row + 1)); }

 private:
  __device__ __forceinline__ float load(int row) const {
    return __uint_as_float(ld_global_nc_u32(first_ + row, row < rows_));
  }

  const float* const first_;
  const int rows_;
};

// What the sums of rows of a sequence are multiplied by: RowFactors, or a number that they have in common.
template <class Spec, class Params>
__device__ __forceinline__ auto row_factors(const Params& params, i64 start, int rows) {
  if constexpr (Spec::kAttnScaleRows) {
    return RowFactors<Params>(params, start, rows);
  } else {
    return common_factor<Spec>(params);
  }
}

// Of `row` and the row 8 further on, the two that a thread has of an accumulator fragment. Looked up where this is
// called, once: what uses them is short of registers.
__device__ __forceinline__ float thread_factors(float common, int) { return common; }
template <class Params>
__device__ __forceinline__ float2 thread_factors(const RowFactors<Params>& factors, int row) {
  asm volatile("" : "+r"(row));
  return make_float2(factors.of(row), factors.of(row + 8));
}

__device__ __forceinline__ float of_half(float common, int) { return common; }
__device__ __forceinline__ float of_half(const float2& factors, int half) { return half == 0 ? factors.x : factors.y; }

__device__ __forceinline__ float factor_of(float common, int) { return common; }
template <class Params>
__device__ __forceinline__ float factor_of(const RowFactors<Params>& factors, int row) {
  return factors.of(row);
}
