// Heads of attention whose weights are the softmax of S over the columns that a row sees. All powers are of two: S is
// multiplied by alpha and log2(e), the largest of a row is taken off, and sums are of fp32.
#pragma once
#include "common/math.cuh"
#include "common/regions.cuh"

// The first heads have softmax.
template <class Spec>
__device__ __forceinline__ bool is_softmax_head(int head) {
  return Spec::kNumSoftmaxHeads == Spec::kHeads || head < Spec::kNumSoftmaxHeads;
}

#ifdef kDropoutSoftmax
// Factors of the sums of rows; softmax has the one of what is kept alone.
__device__ __forceinline__ float unless_softmax(bool softmax, float factor, float kept) {
  return softmax ? kept : factor;
}
__device__ __forceinline__ float2 unless_softmax(bool softmax, const float2& factors, float kept) {
  return make_float2(unless_softmax(softmax, factors.x, kept), unless_softmax(softmax, factors.y, kept));
}
#else
// Factors of the sums of rows; softmax has none.
__device__ __forceinline__ float unless_softmax(bool softmax, float factor) { return softmax ? 1.0f : factor; }
__device__ __forceinline__ float2 unless_softmax(bool softmax, const float2& factors) {
  return make_float2(unless_softmax(softmax, factors.x), unless_softmax(softmax, factors.y));
}
#endif

#ifdef kSoftmaxScore
// Factor of the score of a pair, behind which weights are powers of two: alpha is in the score.
template <class Params>
__device__ __forceinline__ float softmax_scale(const Params&) {
  return 1.44269504f;
}
#else
// Factor of a product of q and k, behind which weights are powers of two.
template <class Params>
__device__ __forceinline__ float softmax_scale(const Params& params) {
  constexpr float kLog2E = 1.44269504f;
  return params.alpha * kLog2E;
}
#endif

template <class Config>
__device__ __forceinline__ float softmax_exp2(float x) {
  if constexpr (Config::kActivationAccurate) {
    return exp2f(x);
  } else {
    return fast_exp2(x);
  }
}

__device__ __forceinline__ float negative_infinity() { return __uint_as_float(0xff800000u); }

// Base that is taken off S: 0 of a row that has seen no column yet, whose powers are then 0 and not NaN.
__device__ __forceinline__ float softmax_base(float largest) { return largest == negative_infinity() ? 0.0f : largest; }

// The four threads of a quad have the columns of a row.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// A row whose columns pass by: the largest S so far, and this thread's part of the sum of weights relative to it.
template <class Config>
class OnlineSoftmax {
 public:
  // This thread's S of some columns, times softmax_scale, become weights; S of a pair that is not valid is minus
  // infinity. `for_each` calls a function with each of them. The result is by what to multiply what was summed up
  // before.
  template <class ForEach>
  __device__ __forceinline__ float weigh(const ForEach& for_each) {
    float largest = largest_;
    for_each([&](float& score) { largest = fmaxf(largest, score); });
    largest = quad_max(largest);
    const float base = softmax_base(largest), kept = softmax_exp2<Config>(largest_ - base);
    largest_ = largest;
    sum_ *= kept;
    for_each([&](float& score) {
      score = softmax_exp2<Config>(score - base);
      sum_ += score;
    });
    return kept;
  }

  // Factor of the sums in the end: 0 of a row that has seen nothing.
  __device__ __forceinline__ float factor() const {
    const float sum = quad_sum(sum_);
    return sum == 0.0f ? 0.0f : 1.0f / sum;
  }

 private:
  float largest_ = negative_infinity(), sum_ = 0.0f;
};

// Statistics of a row of q and head, for backward: the logarithm to base 2 of the sum of its powers, infinite of a row
// that sees nothing, and the sum of P dP.
struct RowStatistics {
  float log2_sum, mean;
};

template <class Spec, class Params>
class SoftmaxRows {
 public:
  // Rows of a sequence of `rows` rows, whose first is row `start` of the tensors.
  __device__ __forceinline__ SoftmaxRows(const Params& params, i64 start, int rows, int head)
      : first_(params.softmax_rows + start * Spec::kNumSoftmaxHeads + head), rows_(rows) {}

  // Gives rows past the end no weights.
  __device__ __forceinline__ RowStatistics of(int row) const {
    if (row >= rows_) return {-negative_infinity(), 0.0f};
    const float2 found = __ldg(first_ + static_cast<i64>(row) * Spec::kNumSoftmaxHeads);
    return {found.x, found.y};
  }

 private:
  const float2* const first_;
  const int rows_;
};

#ifdef kSoftmaxScore
// P of a pair from its score. At most 1: a tile may have columns past the sequence's end, whose score is anything.
template <class Config, class Params>
__device__ __forceinline__ float softmax_weight(float score, const RowStatistics& row, const Params& params) {
  const float power = score * softmax_scale(params) - row.log2_sum;
  return softmax_exp2<Config>(power > 0.0f ? 0.0f : power);  // NaN stays
}

// P and dS, with the factor alpha, of a product of q and k and of dP, where the pair is at().
template <class Config, class At, class Params>
__device__ __forceinline__ void softmax_gradient(float product, const RowStatistics& row, const At& at,
                                                 const Params& params, float& weight, float& gradient) {
  float y, slope;
  score_grad(product, at, params, y, slope);
  weight = softmax_weight<Config>(y, row, params);
  gradient = weight * (gradient - row.mean) * slope;
}
#else
// P and dS, with the factor alpha, of a product of q and k and of dP. P of a pair is at most 1. A tile may have columns
// past the sequence's end, which are zero: where S of a row is far below 0 throughout, theirs would be infinite.
template <class Config, class Params>
__device__ __forceinline__ void softmax_gradient(float product, const RowStatistics& row, const Params& params,
                                                 float& weight, float& gradient) {
  const float power = product * softmax_scale(params) - row.log2_sum;
  weight = softmax_exp2<Config>(power > 0.0f ? 0.0f : power);  // NaN stays
  gradient = weight * (gradient - row.mean) * params.alpha;
}
#endif
