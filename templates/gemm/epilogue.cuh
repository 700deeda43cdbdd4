// What becomes of sums: the epilogue's element, rounded and stored, or a part of a sum that CTAs share.
#pragma once
#include "common/fragment_store.cuh"
#include "common/pack.cuh"

namespace gemm {

// What the epilogue reads for two neighbouring elements.
template <class Epilogue, class Params>
class EpilogueOperands {
  static constexpr int kVectors = Epilogue::Vectors::kCount, kMatrices = Epilogue::Matrices::kCount;

 public:
  __device__ __forceinline__ EpilogueOperands(const Params& params, i64 row, int column) {
    if constexpr (kVectors > 0) {
      using Type = typename Epilogue::Vectors::Type;
      const void* data[kVectors];
      Epilogue::Vectors::find(params, data);
#pragma unroll
      for (int i = 0; i < kVectors; ++i) load<Type>(data[i], column, vectors_[0][i], vectors_[1][i]);
    }
    if constexpr (kMatrices > 0) {
      using Type = typename Epilogue::Matrices::Type;
      const void* data[kMatrices];
      i64 strides[kMatrices];
      Epilogue::Matrices::find(params, data, strides);
#pragma unroll
      for (int i = 0; i < kMatrices; ++i)
        load<Type>(data[i], row * strides[i] + column, matrices_[0][i], matrices_[1][i]);
    }
  }

  __device__ __forceinline__ float apply(const Params& params, float sum, int i) const {
    return Epilogue::apply(params, sum, vectors_[i], matrices_[i]);
  }

 private:
  template <class Type>
  static __device__ __forceinline__ void load(const void* data, i64 element, float& x, float& y) {
    Pack<Type, 2> pair;
    pair.template load<false>(static_cast<const unsigned char*>(data) + element * Type::kBytes);
    x = pair[0];
    y = pair[1];
  }

  float vectors_[2][kVectors > 0 ? kVectors : 1];
  float matrices_[2][kMatrices > 0 ? kMatrices : 1];
};

}  // namespace gemm
