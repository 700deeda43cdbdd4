// The kernel behind one whose CTAs share sums: adds up the parts, in their order, and applies the epilogue.
#pragma once
#include "gemm/column_sums.cuh"
#include "gemm/epilogue.cuh"

// A thread has eight neighbouring elements of the result.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void add_partials(const Params& params) {
  using namespace gemm;
  if constexpr (Config::kColumnSums) add_column_partials<Config>(params);
  constexpr int kElements = 8, kPitch = kPartialPitch<Config>;
  const i64 elements = params.rows * kPitch;
  for (i64 first = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * kElements; first < elements;
       first += static_cast<i64>(gridDim.x) * blockDim.x * kElements) {
    float sums[kElements] = {};
#pragma unroll 4
    for (int split = 0; split < SplitK::kParts; ++split) {
#pragma unroll
      for (int i = 0; i < kElements; i += 4) {
        const float4 part = *reinterpret_cast<const float4*>(params.partials + split * elements + first + i);
        sums[i] += part.x;
        sums[i + 1] += part.y;
        sums[i + 2] += part.z;
        sums[i + 3] += part.w;
      }
    }
    const i64 row = first / kPitch;
    const int column = static_cast<int>(first - row * kPitch);
    EpilogueRun<Config, Epilogue, kElements> run;
    run.load(params, row, column);
    run.store(params, row, column, sums);
  }
}
