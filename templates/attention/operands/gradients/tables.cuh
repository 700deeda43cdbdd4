// Attention backward: the gradients of tables, of elements of heads and of scalars that the score reads, by kernels
// that follow the one of q, k and v.
//
// A site is a place where the score reads such an operand; what a pair adds to the element that it reads there is dP
// times the score's slope. A CTA takes tiles of 64 rows of sequences and keeps the sums of all elements in shared
// memory; what the CTAs have is added up at the end, in their order. Within a tile of 64 rows and 64 columns the terms
// that go to a table are added as integers, whose sum does not depend on the order, in steps of 2^-17 or less of the
// largest one: every run gives the same bits. ScoreSites is printed from the instance's operands.
#pragma once
#include "attention/operands/gradients/kernels.cuh"
#include "common/pack.cuh"

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

// Array j + 1 becomes array j, the first one becomes the last.
template <class T>
__device__ __forceinline__ void turn(T (&array)[kFragments][4]) {
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const T first = array[0][e];
#pragma unroll
    for (int j = 0; j < kFragments - 1; ++j) array[j][e] = array[j + 1][e];
    array[kFragments - 1][e] = first;
  }
}

// Calls body(j) for all fragments j of a tile, whose elements come first in the arrays: these turn meanwhile, and are
// as before at the end. The loop is not unrolled: the compiler would load for all pairs at once, and has no registers
// for that.
template <class Body, class... Arrays>
__device__ __forceinline__ void for_each_fragment(const Body& body, Arrays&... arrays) {
#pragma unroll 1
  for (int j = 0; j < kFragments; ++j) {
    body(j);
    (turn(arrays), ...);
  }
}

// Adds the terms of the pairs of a tile to a table, and leaves them in another order. All threads of the CTA take part.
class TableScatter {
 public:
  __device__ __forceinline__ explicit TableScatter(const SiteMemory& memory) : memory_(memory) {}

  // `sums` are those of the table's entries.
  __device__ __forceinline__ void add(Terms& terms, Entries& entries, float* sums) {
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
  __device__ __forceinline__ void add_integers(Terms& terms, Entries& entries, float times, float* sums) const {
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
#pragma unroll 1
    for (int i = 0; i <= kFragments; ++i) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (i > 0) take(kFragments - 1, e);
        if (i < kFragments) take(0, e + 2);
      }
      turn(terms);
      turn(entries);
    }
    if (sum != 0) atomicAdd(memory_.integers + entry, sum);
  }

  const SiteMemory memory_;
  u32 turn_ = 0;
};

// Sums over the pairs of a tile of rows, tile of columns by tile of columns, and of each its heads.
template <class Spec, class Config, class Params>
class SiteSums {
 public:
  __device__ __forceinline__ SiteSums(const Params& params, const SiteMemory& memory)
      : params_(params), memory_(memory), scatter_(memory) {}

  __device__ __forceinline__ void begin(const Sequence& sequence, int row0) {
    sequence_ = sequence;
    row0_ = row0;
    mask_columns(row0, min(row0 + kTileSize, sequence.rows) - 1, sequence.rows, sequence.targets, column_, end_);
    column_ = max(column_, 0);
    if constexpr (Config::kEvenTiles) column_ &= ~1;
    end_ = min(end_, sequence.rows);
    head_ = 0;
  }

  // What TilePairs::run() calls.
  __device__ __forceinline__ bool next(KvTile& tile) {
    for (; column_ < end_; column_ += kTileSize, head_ = 0) {
      if (head_ == 0) {
        bool full, visible;
        classify<Spec>(sequence_, row0_, column_, full, visible);
        if (!visible) continue;
      }
      if (head_ == Spec::kHeads) continue;
      tile = {head_++, column_};
      return true;
    }
    return false;
  }
  __device__ __forceinline__ void add(const KvTile& tile, const Scores& scores, const Scores& gradients) {
    bool full, visible;
    classify<Spec>(sequence_, row0_, tile.column0, full, visible);
    const Fragment<Spec> fragment(row0_, tile.column0);
    const u32 valid = fragment.valid(sequence_, full);
    const auto factors = thread_factors(row_factors<Spec>(params_, sequence_.start, sequence_.rows), fragment.row);
    Terms products, passed_on;
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        products[j][e] = scores[0][j][e];
        passed_on[j][e] = gradients[0][j][e];
      }
    }
    const auto add_slopes = [&](auto of, Terms& sums) {
      for_each_fragment(
          [&](int j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const auto at = [=] { return fragment.pair(j, e, sequence_, tile.head); };
              const float slope = decltype(of)::slope(products[0][e], at, params_) * of_half(factors, e / 2);
              sums[0][e] += valid >> (4 * j + e) & 1 ? passed_on[0][e] * slope : 0.0f;
            }
          },
          products, passed_on, sums);
    };
    ScoreSites::for_each_head_sum([&](auto head_sum) {
      Terms terms;
      tile.head == 0 ? clear_terms(terms) : get_head_sums(terms);
      add_slopes(head_sum, terms);
#pragma unroll
      for (int j = 0; j < kFragments; ++j)
        head_sums(j) = make_float4(terms[j][0], terms[j][1], terms[j][2], terms[j][3]);
    });
    ScoreSites::for_each_site([&](auto site) {
      using Site = decltype(site);
      Terms terms;
      clear_terms(terms);
      add_slopes(site, terms);
      if constexpr (Site::kOfTable) {
        add_to_table<Site>(terms, fragment, tile.head, products);
      } else {
        add_to_element(terms, Site::kFirst - ScoreSites::kTables + tile.head / Site::kGroup);
      }
    });
    if (tile.head < Spec::kHeads - 1) return;
    ScoreSites::for_each_summed_site([&](auto site) {
      Terms terms;
      get_head_sums(terms);
      add_to_table<decltype(site)>(terms, fragment, tile.head, products);
    });
  }

 private:
  static __device__ __forceinline__ void clear_terms(Terms& terms) {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) terms[j][e] = 0.0f;
    }
  }

  // This thread's sums over the heads of a tile.
  __device__ __forceinline__ float4& head_sums(int j) const { return memory_.head_sums[j * kThreads + threadIdx.x]; }

  __device__ __forceinline__ void get_head_sums(Terms& terms) const {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
      const float4 sums = head_sums(j);
      terms[j][0] = sums.x;
      terms[j][1] = sums.y;
      terms[j][2] = sums.z;
      terms[j][3] = sums.w;
    }
  }

  template <class Site>
  __device__ __forceinline__ void add_to_table(Terms& terms, const Fragment<Spec>& fragment, int head,
                                               Terms& products) {
    Entries entries = {};
    for_each_fragment(
        [&](int j) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const auto at = [=] { return fragment.pair(j, e, sequence_, head); };
            entries[0][e] = static_cast<u32>(Site::entry(products[0][e], at, params_));
          }
        },
        products, entries);
    scatter_.add(terms, entries, memory_.tables + Site::kFirst + head / Site::kGroup * Site::kEntries);
  }

  // To the warp's sum of an element that is in no table.
  __device__ __forceinline__ void add_to_element(const Terms& terms, int element) const {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sum += terms[j][e];
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (threadIdx.x % 32 == 0) memory_.others[warp * ScoreSites::kOthers + element] += sum;
  }

  const Params& params_;
  const SiteMemory memory_;
  TableScatter scatter_;
  Sequence sequence_;
  int row0_, column_, end_;  // of the columns that the rows see
  int head_;
};

// Stores the gradient of an element of an operand, with what it is added to.
template <class Operand, class Params>
__device__ __forceinline__ void store_element(const Params& params, int entry, int head, float sum) {
  using Type = typename Operand::Type;
  using Gradient = typename Operand::Gradient;
  const auto place = [&](auto tensor) {
    if constexpr (Operand::kByHead) {
      return entry * decltype(tensor)::row_stride(params) + head;
    } else {
      return static_cast<i64>(entry + head);  // one of them is 0
    }
  };
  if constexpr (Operand::kAdds) {
    using Before = typename Operand::Before;
    const auto before = Before::data(params)[place(Before())];
    if constexpr (Type::kBytes == 4) {
      sum += before;
    } else {
      const u32 word = before;
      sum += Type::get(&word, 0);
    }
  }
  if constexpr (Type::kBytes == 4) {
    Gradient::data(params)[place(Gradient())] = sum;
  } else {
    u32 word;
    Type::put(&word, 0, sum, 0.0f);
    Gradient::data(params)[place(Gradient())] = static_cast<u16>(word);
  }
}

}  // namespace operand_gradients

// CTAs take tiles of rows in turn, the last ones of all sequences first: under a causal mask these see most. What each
// adds up goes to params.site_sums.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void site_gradients(const Params& params) {
  using namespace operand_gradients;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  const SiteMemory memory(shared_bytes);
  memory.clear();
  SiteSums<Spec, Config, Params> sums(params, memory);
  const i64 tiles = ceil_div(params.max_query_rows, kTileSize);
  for (i64 item = blockIdx.x; item < tiles * params.batch; item += gridDim.x) {
    const int index = static_cast<int>(item % params.batch);
    const int row0 = static_cast<int>(tiles - 1 - item / params.batch) * kTileSize;
    const Sequence sequence = sequence_of<Spec, Config>(params, index);
    if (row0 >= sequence.rows) continue;
    __syncthreads();  // the buffers of the tile before are no longer read
    sums.begin(sequence, row0);
    TilePairs<Spec, Params>(params, sequence, index, shared_address(shared_bytes), row0).run(sums);
  }
  __syncthreads();
  constexpr int kElements = ScoreSites::kTables + ScoreSites::kOthers;
  for (int i = static_cast<int>(threadIdx.x); i < kElements; i += kThreads)
    params.site_sums[static_cast<i64>(blockIdx.x) * kElements + i] = memory.sum(i);
  if (blockIdx.x == 0 && threadIdx.x == 0) *params.site_blocks = static_cast<int>(gridDim.x);
}

// A thread for each element: adds up what the CTAs have, in their order, and stores it.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void add_site_sums(const Params& params) {
  using namespace operand_gradients;
  constexpr int kElements = ScoreSites::kTables + ScoreSites::kOthers;
  const int element = static_cast<int>(blockIdx.x * kSumThreads + threadIdx.x);
  if (element >= kElements) return;
  const int blocks = *params.site_blocks;
  float sum = 0.0f;
#pragma unroll 4
  for (int block = 0; block < blocks; ++block) sum += params.site_sums[static_cast<i64>(block) * kElements + element];
  ScoreSites::for_each_operand([&](auto operand) {
    using Operand = decltype(operand);
    const int own = element - Operand::kFirst;
    if (own < 0 || own >= Operand::kEntries * Operand::kHeads) return;
    store_element<Operand>(params, own % Operand::kEntries, own / Operand::kEntries, sum);
  });
}
