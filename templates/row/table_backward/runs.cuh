// Sums over the rows that found the same row of a table. Rows are gone through in the order of their keys: those of a
// key are a run. Groups of threads have neighbouring parts of the order, which begin and end in the middle of runs.
//
// A part writes the sum of a run that it has whole. Of a run that began before it, it leaves what it added as its head,
// and of one that goes on behind it as its tail. Whoever has a tail adds the heads behind it: first the groups of a CTA,
// whose parts together are the CTA's, with a head and a tail of its own, and in the end the CTAs.
#pragma once
#include "row/table_backward/keys.cuh"

constexpr u32 kNoKey = ~0u;

// Keys of the runs that a part shares with others; kNoKey where there is none.
struct RunEnds {
  u32 head = kNoKey, tail = kNoKey;
  u32 closed = 0;  // the head's run ends in this part
};

// What neighbouring parts left: their ends, and the sums of their heads and tails, kWidth numbers each.
template <int kWidth>
struct RunParts {
  RunEnds* ends;
  float* sums;
  __device__ __forceinline__ float* head(i64 part) const { return sums + 2 * part * kWidth; }
  __device__ __forceinline__ float* tail(i64 part) const { return sums + (2 * part + 1) * kWidth; }
};

// The elements of one row of sums that a thread has.
template <class Layout>
struct RunSums {
  static constexpr bool kByFour = Layout::kVector % 4 == 0;
  float elements[Layout::kChunks][Layout::kVector];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
#pragma unroll
      for (int i = 0; i < Layout::kVector; ++i) elements[chunk][i] = 0;
    }
  }
  // Past L1: other threads wrote them.
  __device__ __forceinline__ void add(const float* from) {
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      if (!Layout::has(chunk)) continue;
      const float* const column = from + Layout::column(chunk);
      if constexpr (kByFour) {
#pragma unroll
        for (int i = 0; i < Layout::kVector; i += 4) {
          const float4 four = __ldcg(reinterpret_cast<const float4*>(column + i));
          elements[chunk][i] += four.x;
          elements[chunk][i + 1] += four.y;
          elements[chunk][i + 2] += four.z;
          elements[chunk][i + 3] += four.w;
        }
      } else {
#pragma unroll
        for (int i = 0; i < Layout::kVector; ++i) elements[chunk][i] += __ldcg(column + i);
      }
    }
  }
  __device__ __forceinline__ void leave(float* to) const { round_to<Fp32>(to); }
  template <class Type>
  __device__ __forceinline__ void round_to(void* row) const {
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      if (!Layout::has(chunk)) continue;
      Pack<Type, Layout::kVector> rounded;
      rounded.set(elements[chunk]);
      rounded.store(static_cast<unsigned char*>(row) + Layout::column(chunk) * Type::kBytes);
    }
  }
};

// The first part behind those whose heads are of the last run of a part; `end` where it goes on to the end.
template <int kWidth>
__device__ __forceinline__ i64 behind_heads(const RunParts<kWidth>& parts, i64 part, i64 end) {
  i64 behind = part + 1;
  while (behind < end && parts.ends[behind].closed == 0) ++behind;
  return min(end, behind + 1);
}

// Adds those heads. Whether the run ends before the part `end`.
template <class Layout, int kWidth>
__device__ __forceinline__ bool add_heads(const RunParts<kWidth>& parts, i64 part, i64 end, RunSums<Layout>& sums) {
  const i64 behind = behind_heads(parts, part, end);
#pragma unroll 1
  for (i64 other = part + 1; other < behind; ++other) sums.add(parts.head(other));
  return behind > part + 1 && parts.ends[behind - 1].closed != 0;
}
