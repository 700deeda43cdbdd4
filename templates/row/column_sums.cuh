// Sums over all rows, in fp32: each thread adds up what its rows add to its columns, each CTA what its threads have,
// and a second kernel the partial sums of all CTAs. Which rows belong together, and in which order partial sums are
// added, follows from the sizes alone, so the same call gives the same bits.
//
// A thread has a few rows, and a short sum of its own. Partial sums are large beside what columns often sum up to, and
// many: their sums are compensated.
#pragma once
#include "common/compensated.cuh"
#include "row/layout.cuh"

template <class Layout, class Operands, int kWidth>
class ColumnSums {
 public:
  __device__ __forceinline__ void add(int sum, int chunk, int i, float value) { sums_[sum][chunk][i] += value; }

  // To partial blockIdx.x of the workspace, which has (partials, column sums, width) numbers. All threads of the CTA
  // call.
  __device__ __forceinline__ void write(float* partials) {
    float* const partial = partials + static_cast<i64>(blockIdx.x) * (Operands::kColumnSums * kWidth);
#pragma unroll
    for (int sum = 0; sum < Operands::kColumnSums; ++sum) {
#pragma unroll
      for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
        add_rows_of_warp(sums_[sum][chunk]);
        if constexpr (kHolders == 1) {
          if (holds() && Layout::has(chunk)) store(partial + sum * kWidth + Layout::column(chunk), sums_[sum][chunk]);
        } else {
          add_holders(sums_[sum][chunk], chunk, partial + sum * kWidth);
        }
      }
    }
  }

 private:
  // Each holder has a sum for every column: a warp, or the warps that share a row.
  static constexpr int kHolders = Layout::kThreads / (Layout::kWarpsPerRow * 32);
  static constexpr int kColumns = Layout::kThreadsPerRow * Layout::kVector;  // of a chunk

  static __device__ __forceinline__ bool holds() { return threadIdx.x % 32 < Layout::kLanesPerRow; }

  static __device__ __forceinline__ void add_rows_of_warp(float (&sums)[Layout::kVector]) {
#pragma unroll
    for (int offset = Layout::kLanesPerRow; offset < 32; offset *= 2) {
#pragma unroll
      for (int i = 0; i < Layout::kVector; ++i) sums[i] += __shfl_xor_sync(~0u, sums[i], offset);
    }
  }

  static __device__ __forceinline__ void store(float* to, const float (&sums)[Layout::kVector]) {
#pragma unroll
    for (int i = 0; i < Layout::kVector; ++i) to[i] = sums[i];
  }

  static __device__ __forceinline__ void add_holders(const float (&sums)[Layout::kVector], int chunk, float* partial) {
    __shared__ __align__(16) unsigned char static_bytes[kHolders * kColumns * sizeof(float)];
    float* const shared = reinterpret_cast<float*>(static_bytes);
    const int holder = threadIdx.x / (Layout::kWarpsPerRow * 32);
    __syncthreads();  // the chunk before was read
    if (holds()) store(shared + holder * kColumns + Layout::thread_of_row() * Layout::kVector, sums);
    __syncthreads();
    for (int i = threadIdx.x; i < kColumns; i += Layout::kThreads) {
      const int column = chunk * kColumns + i;
      if (column >= kWidth) break;
      CompensatedSum sum;
#pragma unroll
      for (int other = 0; other < kHolders; ++other) sum.add(shared[other * kColumns + i]);
      partial[column] = sum.total();
    }
  }

  float sums_[at_least_one(Operands::kColumnSums)][Layout::kChunks][Layout::kVector] = {};
};

// All sums over rows that an operator has.
template <class Layout, class Operands, int kWidth, class = void>
class RowSums {
 public:
  static constexpr int kCount = Operands::kColumnSums;
  __device__ __forceinline__ void add(int sum, int chunk, int i, float value) { columns_.add(sum, chunk, i, value); }

  template <class Params>
  __device__ __forceinline__ void write(const Params& params) {
    columns_.write(params.partials);
  }

 private:
  ColumnSums<Layout, Operands, kWidth> columns_;
};

// The kernel that follows: a warp's 32 columns of a CTA, whose warps share out the partial sums.
template <class Operands, int kWidth, class Params>
__device__ __forceinline__ void add_partials(const Params& params) {
  constexpr int kWarps = 16, kColumns = Operands::kColumnSums * kWidth;
  __shared__ __align__(16) unsigned char static_bytes[kWarps * 32 * sizeof(float)];
  float* const shared = reinterpret_cast<float*>(static_bytes);
  const int column = blockIdx.x * 32 + threadIdx.x % 32, warp = threadIdx.x / 32;
  const int partials = params.rows > 0 ? *params.partial_count : 0;
  CompensatedSum sum;
  if (column < kColumns) {
#pragma unroll 4
    for (int partial = warp; partial < partials; partial += kWarps)
      sum.add(params.partials[static_cast<i64>(partial) * kColumns + column]);
  }
  shared[threadIdx.x] = sum.total();
  __syncthreads();
  if (warp > 0 || column >= kColumns) return;
#pragma unroll
  for (int other = 1; other < kWarps; ++other) sum.add(shared[other * 32 + threadIdx.x]);
  void* outputs[Operands::kColumnSums];
  Operands::column_sums(params, outputs);
  Pack<typename Operands::Vector, 1> rounded;
  rounded.set({sum.total()});
#pragma unroll
  for (int output = 0; output < Operands::kColumnSums; ++output) {
    const int index = column - output * kWidth;
    if (index < 0 || index >= kWidth) continue;
    rounded.store(static_cast<unsigned char*>(outputs[output]) + index * Operands::Vector::kBytes);
  }
}
