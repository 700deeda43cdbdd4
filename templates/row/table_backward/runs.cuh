// Sums over the rows that found the same row of a table. Rows are gone through in the order of their keys: those of a
// key are a run. Groups of threads have neighbouring parts of the order, which begin and end in the middle of runs.
//
// A part writes the sum of a run that it has whole. Of a run that began before it, it leaves what it added as its head,
// and of one that goes on behind it as its tail. Whoever has a tail adds the heads behind it: first the groups of a
// CTA, whose parts together are the CTA's, with a head and a tail of its own, and in the end the CTAs.
#pragma once
#include "row/table_backward/keys.cuh"
#include "row/table_sums.cuh"

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

// The first part behind those whose heads are of the last run of a part; `end` where it goes on to the end.
template <int kWidth>
__device__ __forceinline__ i64 behind_heads(const RunParts<kWidth>& parts, i64 part, i64 end) {
  i64 behind = part + 1;
  while (behind < end && parts.ends[behind].closed == 0) ++behind;
  return min(end, behind + 1);
}

// Adds those heads. Whether the run ends before the part `end`.
template <class Layout, int kWidth>
__device__ __forceinline__ bool add_heads(const RunParts<kWidth>& parts, i64 part, i64 end,
                                          TableRowSums<Layout>& sums) {
  const i64 behind = behind_heads(parts, part, end);
#pragma unroll 1
  for (i64 other = part + 1; other < behind; ++other) sums.add(parts.head(other));
  return behind > part + 1 && parts.ends[behind - 1].closed != 0;
}
