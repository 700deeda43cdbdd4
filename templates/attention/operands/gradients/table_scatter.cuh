// Shared memory of a CTA that adds up gradients of tables, and how the terms of a tile go to a table
// (tables.cuh): as integers, in steps of 2^-17 or less of the largest one.
#pragma once
#include "attention/operands/gradients/tiles.cuh"

namespace operand_gradients {

constexpr u32 kInfinity = 0x7f800000;  // the bits of what is no number are above it, those of numbers below

// Shared memory of a CTA, behind the buffers of tiles.
struct SiteMemory {
  struct Extent {
    u32 largest, lowest, highest;
  };
  using Warps = Extent[kWarps];
  static constexpr int kReductionBytes = 128;
  static_assert(2 * sizeof(Warps) <= kReductionBytes, "two reductions must fit");

  Warps* extents;     // two, of which one may still be read
  float4* head_sums;  // of a tile: [fragment][thread]
  float* tables;      // sums of elements
  float* others;      // of elements that are in no table, as each warp has them
  int* integers;      // of the entries of a table: sums of a tile; 0 between tiles

  __device__ __forceinline__ explicit SiteMemory(unsigned char* shared)
      : extents(reinterpret_cast<Warps*>(shared + kStaticBytes)),
        head_sums(reinterpret_cast<float4*>(shared + kStaticBytes + kReductionBytes)),
        tables(reinterpret_cast<float*>(head_sums + (ScoreSites::kSumsHeads ? kFragments * kThreads : 0))),
        others(tables + ScoreSites::kTables),
        integers(reinterpret_cast<int*>(others + kWarps * ScoreSites::kOthers)) {}

  __device__ __forceinline__ void clear() const {
    for (int i = static_cast<int>(threadIdx.x); i < ScoreSites::kTables + kWarps * ScoreSites::kOthers; i += kThreads)
      tables[i] = 0.0f;
    for (int i = static_cast<int>(threadIdx.x); i < ScoreSites::kMostEntries; i += kThreads) integers[i] = 0;
  }

  // The sum of an element, all warps being done.
  __device__ __forceinline__ float sum(int element) const {
    if (element < ScoreSites::kTables) return tables[element];
    float sum = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) sum += others[warp * ScoreSites::kOthers + element - ScoreSites::kTables];
    return sum;
  }
};

using Terms = float[kFragments][4];
using Entries = u32[kFragments][4];  // that they go to

// Makes the compiler take the value for unknown. What is computed from it stays behind what was made unknown before: so
// the loads of one fragment's pairs wait for the terms of the last one's, where those of all would need more registers
// than there are.
template <class Integer>
__device__ __forceinline__ void make_unknown(Integer& value) {
  asm volatile("" : "+r"(value));
}
__device__ __forceinline__ void make_unknown(float& value) {
  u32 bits = __float_as_uint(value);
  make_unknown(bits);
  value = __uint_as_float(bits);
}

// Adds the terms of the pairs of a tile to a table. All threads of the CTA take part.
class TableScatter {
 public:
  __device__ __forceinline__ explicit TableScatter(const SiteMemory& memory) : memory_(memory) {}

  // `sums` are those of the table's entries.
  __device__ __forceinline__ void add(const Terms& terms, const Entries& entries, float* sums) {
    SiteMemory::Extent own = {0, ~0u, 0};
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const u32 bits = __float_as_uint(fabsf(terms[j][e])), entry = entries[j][e];
        if (bits == 0) continue;
        own = {max(own.largest, bits < kInfinity ? bits : 1u), min(own.lowest, entry), max(own.highest, entry)};
      }
    }
    const SiteMemory::Extent all = reduce(own);
    if (all.largest == 0) return;
    // The largest becomes less than 2^18, so that the terms of all pairs fit.
    const u32 exponent = min(271 - (all.largest >> 23), 253u);
    add_integers(terms, entries, __uint_as_float(exponent << 23), sums);
    __syncthreads();
    const float step = __uint_as_float((254 - exponent) << 23);
    for (u32 entry = all.lowest + threadIdx.x; entry <= all.highest; entry += kThreads) {
      const int sum = memory_.integers[entry];
      if (sum == 0) continue;
      sums[entry] += static_cast<float>(sum) * step;
      memory_.integers[entry] = 0;
    }
  }

 private:
  __device__ __forceinline__ SiteMemory::Extent reduce(const SiteMemory::Extent& own) {
    SiteMemory::Warps& warps = memory_.extents[turn_];
    turn_ ^= 1;
    SiteMemory::Extent all = {__reduce_max_sync(~0u, own.largest), __reduce_min_sync(~0u, own.lowest),
                              __reduce_max_sync(~0u, own.highest)};
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = all;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      all = {max(all.largest, warps[i].largest), min(all.lowest, warps[i].lowest), max(all.highest, warps[i].highest)};
    }
    return all;
  }

  // Neighbours that go to one entry, on a diagonal or in a row, are added up first.
  __device__ __forceinline__ void add_integers(const Terms& terms, const Entries& entries, float times,
                                               float* sums) const {
    u32 entry = entries[0][2];
    int sum = 0;
    const auto take = [&](int j, int e) {
      const u32 own = entries[j][e];
      const bool is_number = __float_as_uint(fabsf(terms[j][e])) < kInfinity;
      if (!is_number) atomicAdd(sums + own, terms[j][e]);
      const int term = is_number ? __float2int_rn(terms[j][e] * times) : 0;
      if (own == entry) {
        sum += term;
        return;
      }
      if (sum != 0) atomicAdd(memory_.integers + entry, sum);
      entry = own;
      sum = term;
    };
#pragma unroll
    for (int i = 0; i <= kFragments; ++i) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (i > 0) take(i - 1, e);
        if (i < kFragments) take(i, e + 2);
      }
    }
    if (sum != 0) atomicAdd(memory_.integers + entry, sum);
  }

  const SiteMemory memory_;
  u32 turn_ = 0;
};

}  // namespace operand_gradients
