// Sums over the rows that found the same row of a table. Rows are gone through in the order of those, their keys: rows
// of a key are a run. Groups of threads have neighbouring parts of the order, which begin and end in the middle of
// runs.
//
// A part writes the sum of a run that it has whole. Of a run that began before it, it leaves what it added as its head,
// and of one that goes on behind it as its tail. Whoever has a tail adds the heads behind it: first the groups of a
// CTA, whose parts together are the CTA's, with a head and a tail of its own, and in the end the CTAs.
#pragma once
#include "row/table_sums.cuh"

// Keys of the runs that a part shares with others; kNoKey where there is none.
struct RunEnds {
  u32 head = kNoKey, tail = kNoKey;
  u32 closed = 0;  // the head's run ends in this part
};

// Results of neighbouring parts: their ends, and the sums of their heads and tails, kWidth numbers each.
template <int kWidth>
struct RunParts {
  RunEnds* ends;
  float* sums;
  __device__ __forceinline__ float* head(i64 part) const { return sums + 2 * part * kWidth; }
  __device__ __forceinline__ float* tail(i64 part) const { return sums + (2 * part + 1) * kWidth; }
};

// The first part behind those whose heads are of the last run of a part; `end` where it goes on to the end. A part that
// has no head of that run, whatever the order, ends it: what it left is not there, or another's.
template <int kWidth>
__device__ __forceinline__ i64 behind_heads(const RunParts<kWidth>& parts, i64 part, u32 key, i64 end) {
  for (i64 behind = part + 1; behind < end; ++behind) {
    if (parts.ends[behind].head != key) return behind;
    if (parts.ends[behind].closed != 0) return behind + 1;
  }
  return end;
}

// The same for a warp, whose lanes look at 32 parts at a time: a run may go on through all of them.
template <int kWidth>
__device__ __forceinline__ i64 behind_heads_by_warp(const RunParts<kWidth>& parts, i64 part, u32 key, i64 end) {
  const int lane = threadIdx.x % 32;
  for (i64 first = part + 1; first < end; first += 32) {
    const i64 own = first + lane;
    const bool other = own < end && parts.ends[own].head != key;
    const u32 stops = __ballot_sync(~0u, other || (own < end && parts.ends[own].closed != 0));
    if (stops == 0) continue;
    const int last = __ffs(stops) - 1;
    return first + last + (__shfl_sync(~0u, other, last) ? 0 : 1);
  }
  return end;
}

// Adds those heads. Whether the run ends before the part `end`: with one of them, or since there is a part without.
template <class Layout, int kWidth>
__device__ __forceinline__ bool add_heads(const RunParts<kWidth>& parts, i64 part, u32 key, i64 end,
                                          TableRowSums<Layout>& sums) {
  const i64 behind = behind_heads(parts, part, key, end);
#pragma unroll 2
  for (i64 other = part + 1; other < behind; ++other) sums.add(parts.head(other));
  return behind < end || (behind > part + 1 && parts.ends[behind - 1].closed != 0);
}

// Which part of the order a thread has, where each group of threads that share a row has one.
template <class Layout>
struct PartOfRowThreads {
  static constexpr int kParts = Layout::kRows;  // of a CTA
  static __device__ __forceinline__ int part() { return Layout::row_of_cta(); }
  static __device__ __forceinline__ bool leads() { return Layout::thread_of_row() == 0; }
  static __device__ __forceinline__ bool writes() { return true; }  // the others of the part have the same sums
};

// Results that a thread leaves of its part's runs, which are rows of table kTable.
template <class Part, class Layout, class Operands, int kTable, int kWidth, class Params>
class RunSums {
 public:
  using Sums = TableRowSums<Layout>;

  __device__ __forceinline__ explicit RunSums(const Params& params)
      : params_(params), own_{nullptr, params.group_sums + 2ll * blockIdx.x * Part::kParts * kWidth} {
    void* data[Operands::TableSums::kCount];
    i64 strides[Operands::TableSums::kCount];
    Operands::TableSums::rows(params, data, strides);
    table_ = static_cast<unsigned char*>(data[kTable]);
    stride_ = strides[kTable];
  }

  // A run of which the part has the first row, if it `began` there, and the last one, if it `ends` there.
  __device__ __forceinline__ void end(u32 key, bool began, bool ends, const Sums& sums) {
    if (began && ends) return write(key, sums);
    if (began) {
      ends_.tail = key;
      if (Part::writes()) sums.leave(own_.tail(Part::part()));
    } else {
      ends_.head = key;
      ends_.closed = ends;
      if (Part::writes()) sums.leave(own_.head(Part::part()));
    }
  }

  // The row of the table.
  __device__ __forceinline__ void write(u32 key, const Sums& sums) const {
    if (Part::writes()) sums.template round_to<Type>(table_ + key * stride_ * Type::kBytes);
  }

  // The parts of a CTA become the CTA's. All threads call.
  __device__ __forceinline__ void join() {
    __shared__ __align__(16) unsigned char static_bytes[(Part::kParts + 1) * sizeof(RunEnds)];
    own_.ends = reinterpret_cast<RunEnds*>(static_bytes);
    RunEnds* const cta = own_.ends + Part::kParts;
    const int part = Part::part();
    if (Part::leads()) own_.ends[part] = ends_;
    if (threadIdx.x == 0) *cta = RunEnds();
    __syncthreads();
    const RunParts<kWidth> ctas = parts_of_ctas();
    // A tail, and the first part's head, which is the CTA's.
#pragma unroll 1
    for (int kind = 0; kind < 2; ++kind) {
      const bool tail = kind == 0;
      const u32 key = tail ? ends_.tail : part == 0 ? ends_.head : kNoKey;
      if (key == kNoKey || !Part::writes()) continue;
      Sums sums;
      sums.clear();
      sums.add(tail ? own_.tail(part) : own_.head(part));
      const bool closed = (!tail && ends_.closed != 0) || add_heads(own_, part, key, Part::kParts, sums);
      if (tail && closed) {
        write(key, sums);
        continue;
      }
      sums.leave(tail ? ctas.tail(blockIdx.x) : ctas.head(blockIdx.x));
      if (!Part::leads()) continue;
      if (tail) cta->tail = key;
      if (!tail) cta->head = key;
      if (!tail) cta->closed = closed;
    }
    __syncthreads();
    if (threadIdx.x == 0) ctas.ends[blockIdx.x] = *cta;
    if (blockIdx.x == 0 && threadIdx.x == 0) *params_.cta_count = gridDim.x;
  }

  // Finishes the runs of all CTAs: those that go on from one to another. A CTA has 32 columns of one part's tail; its
  // warps take turns with the heads behind it.
  __device__ __forceinline__ void finish() const {
    constexpr int kWarps = 8, kColumnGroups = ceil_div(kWidth, 32);
    __shared__ __align__(16) unsigned char static_bytes[kWarps * 32 * sizeof(float)];
    float* const shared = reinterpret_cast<float*>(static_bytes);
    const int ctas = *params_.cta_count, part = blockIdx.x / kColumnGroups;
    const int column = blockIdx.x % kColumnGroups * 32 + threadIdx.x % 32, warp = threadIdx.x / 32;
    const RunParts<kWidth> parts = parts_of_ctas();
    if (part >= ctas || parts.ends[part].tail == kNoKey) return;
    const i64 behind = behind_heads_by_warp(parts, part, parts.ends[part].tail, ctas);
    float sum = 0;
    if (column < kWidth) {
      if (warp == 0) sum = parts.tail(part)[column];
#pragma unroll 4
      for (i64 other = part + 1 + warp; other < behind; other += kWarps) sum += parts.head(other)[column];
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0 || column >= kWidth) return;
#pragma unroll
    for (int other = 1; other < kWarps; ++other) sum += shared[other * 32 + threadIdx.x];
    Pack<Type, 1> rounded;
    rounded.set({sum});
    rounded.store(table_ + (parts.ends[part].tail * stride_ + column) * Type::kBytes);
  }

 private:
  using Type = typename Operands::Table;

  __device__ __forceinline__ RunParts<kWidth> parts_of_ctas() const {
    return {reinterpret_cast<RunEnds*>(params_.cta_ends), params_.cta_sums};
  }

  const Params& params_;
  unsigned char* table_;
  i64 stride_;  // in elements
  RunParts<kWidth> own_;
  RunEnds ends_;
};
