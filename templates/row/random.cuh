// Random numbers of a chunk's elements (hstu.random): drawn anew wherever they are used.
#pragma once
#include "common/philox.cuh"
#include "row/elements.cuh"

template <class Layout, class Row>
class RandomInputs<Layout, Row, typename Exists<typename Row::Random>::type> {
 public:
  static constexpr int kCount = Row::Random::kCount;

  // Draws the numbers whose bits are set in kReads, the lowest bit being that of the first.
  template <u32 kReads, class Params, int kNumber = 0>
  __device__ __forceinline__ void get(const Params& params, i64 row, int column) {
    if constexpr (kNumber < kCount) {
      if constexpr ((kReads >> kNumber & 1) != 0)
        Row::Random::template draw<kNumber>(params, row, column, numbers_[kNumber]);
      get<kReads, Params, kNumber + 1>(params, row, column);
    }
  }

  __device__ __forceinline__ float operator()(int number, int i) const { return numbers_[number][i]; }

 private:
  float numbers_[kCount][Layout::kVector];
};
