// Rows whose elements come in groups of neighbours (hstu.row with groups): each group is summed up for itself, and has
// statistics of its own. A vector of elements is of one group.
#pragma once
#include "row/elements.cuh"
#include "row/reduce.cuh"

template <class Layout, class Operands>
struct GroupLayout {
  static constexpr int kGroups = Operands::Groups::kCount;
  static constexpr int kVectors = Layout::kVectors / kGroups;  // of a group
  static_assert(Layout::kVectors % kGroups == 0, "a vector is of one group");
  static __device__ __forceinline__ int group(int column) { return column / (kVectors * Layout::kVector); }
};

// A number of each group, the same for all rows: it is in L1 when it is needed.
template <class Layout, class Operands>
class GroupInputs<Layout, Operands, typename Exists<typename Operands::Groups>::type> {
 public:
  static constexpr int kCount = Operands::Groups::kVectors;

  template <u32 kReads, class Params>
  __device__ __forceinline__ void get(const Params& params, int column) {
    if constexpr (kCount > 0) {
      const void* data[kCount];
      Operands::Groups::vectors(params, data);
      const int group = GroupLayout<Layout, Operands>::group(column);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if ((kReads >> i & 1) == 0) continue;
        Pack<typename Operands::Vector, 1> element;
        element.template load<false>(static_cast<const unsigned char*>(data[i]) + group * Operands::Vector::kBytes);
        numbers_[i] = element[0];
      }
    }
  }

  __device__ __forceinline__ float operator()(int input, int) const { return numbers_[input]; }

 private:
  float numbers_[at_least_one(kCount)];
};

template <class Layout, class Operands, int kMaxSums>
class PartReducer<Layout, Operands, kMaxSums, typename Exists<typename Operands::Groups>::type> {
  using Groups = GroupLayout<Layout, Operands>;
  // Then groups are lanes, warps or chunks; else they are taken one after the other.
  static constexpr bool kPowerOfTwo = (Groups::kVectors & (Groups::kVectors - 1)) == 0;
  static constexpr int kThreadsPerGroup =
      Groups::kVectors < Layout::kThreadsPerRow ? Groups::kVectors : Layout::kThreadsPerRow;
  static constexpr int kChunksPerPart = kPowerOfTwo ? Groups::kVectors / kThreadsPerGroup : 1;

 public:
  static constexpr int kParts = ceil_div(Layout::kChunks, kChunksPerPart);
  static __device__ __forceinline__ int part(int chunk) { return chunk / kChunksPerPart; }

  template <int kSums>
  __device__ __forceinline__ void add_up(float (&sums)[kParts][kSums]) {
    if constexpr (kPowerOfTwo) {
      constexpr int kLanes = kThreadsPerGroup < 32 ? kThreadsPerGroup : 32;
#pragma unroll
      for (int offset = kLanes / 2; offset > 0; offset /= 2) exchange(sums, offset);
      if constexpr (kThreadsPerGroup > 32) across_warps(sums);
    } else {
      one_by_one(sums);
    }
  }

 private:
  template <int kSums>
  static __device__ __forceinline__ void exchange(float (&sums)[kParts][kSums], int offset) {
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums[part][i] += __shfl_xor_sync(~0u, sums[part][i], offset);
    }
  }

  // As RowReducer does it, for the warps of a group.
  template <int kSums>
  __device__ __forceinline__ void across_warps(float (&sums)[kParts][kSums]) {
    constexpr int kWarps = Layout::kThreads / 32, kWarpsPerGroup = kThreadsPerGroup / 32;
    constexpr int kNumbers = kParts * kMaxSums;  // of a warp
    __shared__ __align__(16) unsigned char static_bytes[2 * kWarps * kNumbers * sizeof(float)];
    float* const buffer = reinterpret_cast<float*>(static_bytes) + buffer_ * kWarps * kNumbers;
    buffer_ ^= 1;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        if (lane == 0) buffer[warp * kNumbers + part * kMaxSums + i] = sums[part][i];
      }
    }
    __syncthreads();
    const int other = warp / kWarpsPerGroup * kWarpsPerGroup + lane % kWarpsPerGroup;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums[part][i] = buffer[other * kNumbers + part * kMaxSums + i];
    }
#pragma unroll
    for (int offset = kWarpsPerGroup / 2; offset > 0; offset /= 2) exchange(sums, offset);
  }

  // Each group as a row that has zeros elsewhere.
  template <int kSums>
  __device__ __forceinline__ void one_by_one(float (&sums)[kParts][kSums]) {
#pragma unroll 1
    for (int group = 0; group < Groups::kGroups; ++group) {
      float total[kSums] = {};
#pragma unroll
      for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
        if (!mine(chunk, group)) continue;
#pragma unroll
        for (int i = 0; i < kSums; ++i) total[i] += sums[chunk][i];
      }
      rows_.add_up(total);
#pragma unroll
      for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
        if (!mine(chunk, group)) continue;
#pragma unroll
        for (int i = 0; i < kSums; ++i) sums[chunk][i] = total[i];
      }
    }
  }

  static __device__ __forceinline__ bool mine(int chunk, int group) {
    return Layout::has(chunk) && Groups::group(Layout::column(chunk)) == group;
  }

  RowReducer<Layout, kMaxSums> rows_;
  int buffer_ = 0;
};
