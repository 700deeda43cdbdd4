// A sum of many numbers that is as exact as one of few: what each addition rounds off is added up beside it.
#pragma once

class CompensatedSum {
 public:
  __device__ __forceinline__ void add(float x) {
    const float total = sum_ + x, added = total - sum_;
    rest_ += (sum_ - (total - added)) + (x - added);
    sum_ = total;
  }

  // The rest of an infinite sum is NaN, and does not count.
  __device__ __forceinline__ float total() const { return rest_ == rest_ ? sum_ + rest_ : sum_; }

 private:
  float sum_ = 0, rest_ = 0;
};
