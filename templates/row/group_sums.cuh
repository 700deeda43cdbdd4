// Sums over all rows and the elements of a group, in the way of column_sums.cuh: a thread adds up those of a vector,
// which are of one group, and what the CTAs have for each vector is added up by a kernel that follows.
#pragma once
#include "row/column_sums.cuh"
#include "row/groups.cuh"

// Vectors as the elements of a row.
template <class Layout>
struct VectorLayout : Layout {
  static constexpr int kVector = 1;
  static __device__ __forceinline__ int column(int chunk) { return Layout::column(chunk) / Layout::kVector; }
};

template <class Operands>
struct GroupSumsAsColumns {
  static constexpr int kColumnSums = Operands::GroupSums::kCount;
};

template <class Layout, class Operands, int kWidth>
class RowSums<Layout, Operands, kWidth, typename Exists<typename Operands::GroupSums>::type> {
 public:
  static constexpr int kCount = Operands::kColumnSums + Operands::GroupSums::kCount;

  __device__ __forceinline__ void add(int sum, int chunk, int i, float value) {
    if (sum < Operands::kColumnSums) {
      columns_.add(sum, chunk, i, value);
    } else {
      groups_.add(sum - Operands::kColumnSums, chunk, 0, value);
    }
  }

  template <class Params>
  __device__ __forceinline__ void write(const Params& params) {
    if constexpr (Operands::kColumnSums > 0) columns_.write(params.partials);
    groups_.write(params.group_partials);
  }

 private:
  ColumnSums<Layout, Operands, kWidth> columns_;
  ColumnSums<VectorLayout<Layout>, GroupSumsAsColumns<Operands>, Layout::kVectors> groups_;
};

// The kernel that follows: a CTA for each number.
template <class Spec, class Config, class Params>
__device__ void add_group_sums(const Params& params) {
  using Layout = RowLayout<Spec, Config>;
  using Groups = GroupLayout<Layout, Operands>;
  constexpr int kThreads = 512, kCount = Operands::GroupSums::kCount;
  __shared__ __align__(16) unsigned char static_bytes[kThreads * sizeof(float)];
  float* const shared = reinterpret_cast<float*>(static_bytes);
  const int sum = blockIdx.x / Groups::kGroups, group = blockIdx.x % Groups::kGroups;
  const int partials = params.rows > 0 ? *params.partial_count : 0;
  const float* const first = params.group_partials + sum * Layout::kVectors + group * Groups::kVectors;
  CompensatedSum total;
#pragma unroll 4
  for (int i = threadIdx.x; i < partials * Groups::kVectors; i += kThreads) {
    const i64 partial = i / Groups::kVectors;
    total.add(first[partial * (kCount * Layout::kVectors) + i % Groups::kVectors]);
  }
  shared[threadIdx.x] = total.total();
#pragma unroll 1
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x > 0) return;
  void* outputs[kCount];
  Operands::GroupSums::sums(params, outputs);
  Pack<typename Operands::Vector, 1> rounded;
  rounded.set({shared[0]});
#pragma unroll
  for (int output = 0; output < kCount; ++output) {
    if (output == sum) rounded.store(static_cast<unsigned char*>(outputs[output]) + group * Operands::Vector::kBytes);
  }
}
