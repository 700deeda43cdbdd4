// Operands of attention that multiply the rows of P in place of the scale: each row of q has a factor, or all have one.
// Spec::Factors is printed from the instance's operands.
#pragma once
#include "attention/dropout.cuh"  // where kDropout
#include "common/ptx/ld_global.cuh"

// Factor of sums that are not of one row: 1 where each row has a factor of its own, which was then multiplied into what
// was added up.
template <class Spec, class Params>
__device__ __forceinline__ float common_factor(const Params& params) {
#ifdef kDropout
  // The kept part of P makes up for the rest, here or in the factors of rows.
  if constexpr (!Spec::Factors::kPresent) {
    return params.inverse_scale * kept_factor(params);
  } else if constexpr (!Spec::Factors::kOfRows) {
    return __ldg(Spec::Factors::Tensor::data(params)) * kept_factor(params);
  } else {
    return 1.0f;
  }
#else
  if constexpr (!Spec::Factors::kPresent) {
    return params.inverse_scale;
  } else if constexpr (!Spec::Factors::kOfRows) {
    return __ldg(Spec::Factors::Tensor::data(params));
  } else {
    return 1.0f;
  }
#endif
}

// The factors of a sequence's rows of q, where each has its own.
template <class Spec, class Params>
class RowFactors {
 public:
  // Factors of a sequence of `rows` rows, whose first is row `start` of the tensor.
#ifdef kDropout
  __device__ __forceinline__ RowFactors(const Params& params, i64 start, int rows)
      : first_(Spec::Factors::Tensor::data(params) + start), rows_(rows), kept_(kept_factor(params)) {}
#else
  __device__ __forceinline__ RowFactors(const Params& params, i64 start, int rows)
      : first_(Spec::Factors::Tensor::data(params) + start), rows_(rows) {}
#endif

  // 0, and not read, of rows past the end.
#ifdef kDropout
  __device__ __forceinline__ float of(int row) const { return row < rows_ ? __ldg(first_ + row) * kept_ : 0.0f; }
#else
  __device__ __forceinline__ float of(int row) const { return row < rows_ ? __ldg(first_ + row) : 0.0f; }
#endif

  // Factors of `row` and the next, loaded where this is called: what uses them is short of registers.
  __device__ __forceinline__ float2 pair(int row) const { return make_float2(load(row), load(row + 1)); }

 private:
  __device__ __forceinline__ float load(int row) const {
#ifdef kDropout
    return __uint_as_float(ld_global_nc_u32(first_ + row, row < rows_)) * kept_;
#else
    return __uint_as_float(ld_global_nc_u32(first_ + row, row < rows_));
#endif
  }

  const float* const first_;
  const int rows_;
#ifdef kDropout
  const float kept_;
#endif
};

// Factors of the sums of rows of a sequence: RowFactors, or a number that they have in common.
template <class Spec, class Params>
__device__ __forceinline__ auto row_factors(const Params& params, i64 start, int rows) {
  if constexpr (Spec::Factors::kOfRows) {
    return RowFactors<Spec, Params>(params, start, rows);
  } else {
    return common_factor<Spec>(params);
  }
}

// Factors of `row` and the row 8 further on, the two that a thread has of an accumulator fragment. Looked up where this
// is called, once: what uses them is short of registers.
__device__ __forceinline__ float thread_factors(float common, int) { return common; }
template <class Spec, class Params>
__device__ __forceinline__ float2 thread_factors(const RowFactors<Spec, Params>& factors, int row) {
  asm volatile("" : "+r"(row));
  return make_float2(factors.of(row), factors.of(row + 8));
}

__device__ __forceinline__ float of_half(float common, int) { return common; }
__device__ __forceinline__ float of_half(const float2& factors, int half) { return half == 0 ? factors.x : factors.y; }

__device__ __forceinline__ float factor_of(float common, int) { return common; }
template <class Spec, class Params>
__device__ __forceinline__ float factor_of(const RowFactors<Spec, Params>& factors, int row) {
  return factors.of(row);
}
