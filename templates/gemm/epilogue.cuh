// What becomes of sums: the epilogue's element, rounded and stored, or a part of a sum that CTAs share.
#pragma once
#include "common/fragment_store.cuh"
#include "common/pack.cuh"

namespace gemm {

// Two neighbouring elements of what the epilogue reads.
template <class Type>
__device__ __forceinline__ void load_pair(const void* data, i64 element, float& x, float& y) {
  Pack<Type, 2> pair;
  pair.template load<false>(static_cast<const unsigned char*>(data) + element * Type::kBytes);
  x = pair[0];
  y = pair[1];
}

// Of its vectors of columns.
template <class Epilogue>
class EpilogueVectors {
  static constexpr int kCount = Epilogue::Vectors::kCount;

 public:
  template <class Params>
  __device__ __forceinline__ EpilogueVectors(const Params& params, int column) {
    if constexpr (kCount > 0) {
      const void* data[kCount];
      Epilogue::Vectors::find(params, data);
#pragma unroll
      for (int i = 0; i < kCount; ++i)
        load_pair<typename Epilogue::Vectors::Type>(data[i], column, of_[0][i], of_[1][i]);
    }
  }

  __device__ __forceinline__ const float* operator[](int i) const { return of_[i]; }

 private:
  float of_[2][kCount > 0 ? kCount : 1];
};

// Of its matrices, which are as large as the result.
template <class Epilogue>
class EpilogueMatrices {
  static constexpr int kCount = Epilogue::Matrices::kCount;

 public:
  template <class Params>
  __device__ __forceinline__ EpilogueMatrices(const Params& params, i64 row, int column) {
    if constexpr (kCount > 0) {
      const void* data[kCount];
      i64 strides[kCount];
      Epilogue::Matrices::find(params, data, strides);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        load_pair<typename Epilogue::Matrices::Type>(data[i], row * strides[i] + column, of_[0][i], of_[1][i]);
      }
    }
  }

  __device__ __forceinline__ const float* operator[](int i) const { return of_[i]; }

 private:
  float of_[2][kCount > 0 ? kCount : 1];
};

}  // namespace gemm
