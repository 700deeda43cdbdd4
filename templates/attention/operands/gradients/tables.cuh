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

  Warps* extents;  // two, of which one may still be read
  float* tables;   // sums of elements
  float* others;   // of elements that are in no table, as each warp has them
  int* integers;   // of the entries of a table: sums of a tile; 0 between tiles

  __device__ __forceinline__ explicit SiteMemory(unsigned char* shared)
      : extents(reinterpret_cast<Warps*>(shared + kStaticBytes)),
        tables(reinterpret_cast<float*>(shared + kStaticBytes + kReductionBytes)),
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

// Adds the terms of the pairs of a tile to a table. All threads of the CTA take part.
class TableScatter {
 public:
  __device__ __forceinline__ explicit TableScatter(const SiteMemory& memory) : memory_(memory) {}

  // entry_of(j, e): the entry that term e of fragment j goes to; `sums` are those of the table's entries.
  template <class EntryOf>
  __device__ __forceinline__ void add(const Terms& terms, float* sums, const EntryOf& entry_of) {
    int entries[kFragments][4];
    SiteMemory::Extent own = {0, ~0u, 0};
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        entries[j][e] = entry_of(j, e);
        const u32 bits = __float_as_uint(fabsf(terms[j][e])), entry = static_cast<u32>(entries[j][e]);
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
  __device__ __forceinline__ void add_integers(const Terms& terms, const int (&entries)[kFragments][4], float times,
                                               float* sums) const {
    int entry = entries[0][2], sum = 0;
    const auto take = [&](int j, int e) {
      const bool is_number = __float_as_uint(fabsf(terms[j][e])) < kInfinity;
      if (!is_number) atomicAdd(sums + entries[j][e], terms[j][e]);
      const int term = is_number ? __float2int_rn(terms[j][e] * times) : 0;
      if (entries[j][e] == entry) {
        sum += term;
        return;
      }
      if (sum != 0) atomicAdd(memory_.integers + entry, sum);
      entry = entries[j][e];
      sum = term;
    };
#pragma unroll
    for (int j = 0; j <= kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (j > 0) take(j - 1, e);
        if (j < kFragments) take(j, e + 2);
      }
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
    const auto add_slopes = [&](auto of, Terms& sums) {
#pragma unroll
      for (int j = 0; j < kFragments; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const auto at = [=] { return fragment.pair(j, e, sequence_, tile.head); };
          const float slope = decltype(of)::slope(scores[0][j][e], at, params_);
          sums[j][e] += valid >> (4 * j + e) & 1 ? gradients[0][j][e] * slope * of_half(factors, e / 2) : 0.0f;
        }
      }
    };
    if (tile.head == 0) {
#pragma unroll
      for (auto& sums : sums_) clear_terms(sums);
    }
    ScoreSites::for_each_head_sum([&](auto head_sum) { add_slopes(head_sum, sums_[decltype(head_sum)::kIndex]); });
    ScoreSites::for_each_site([&](auto site) {
      using Site = decltype(site);
      if constexpr (Site::kHeadSum >= 0) {
        if (tile.head == Spec::kHeads - 1) add_to_table<Site>(sums_[Site::kHeadSum], fragment, tile.head, scores);
      } else {
        Terms terms;
        clear_terms(terms);
        add_slopes(site, terms);
        if constexpr (Site::kOfTable) {
          add_to_table<Site>(terms, fragment, tile.head, scores);
        } else {
          add_to_element(terms, Site::kFirst - ScoreSites::kTables + tile.head / Site::kGroup);
        }
      }
    });
  }

 private:
  static __device__ __forceinline__ void clear_terms(Terms& terms) {
#pragma unroll
    for (auto& fragment : terms) {
#pragma unroll
      for (float& term : fragment) term = 0.0f;
    }
  }

  template <class Site>
  __device__ __forceinline__ void add_to_table(const Terms& terms, const Fragment<Spec>& fragment, int head,
                                               const Scores& scores) {
    float* const sums = memory_.tables + Site::kFirst + head / Site::kGroup * Site::kEntries;
    scatter_.add(terms, sums, [&](int j, int e) {
      const auto at = [=] { return fragment.pair(j, e, sequence_, head); };
      return Site::entry(scores[0][j][e], at, params_);
    });
  }

  // To the warp's sum of an element that is in no table.
  __device__ __forceinline__ void add_to_element(const Terms& terms, int element) const {
    float sum = 0.0f;
#pragma unroll
    for (const auto& fragment : terms) {
#pragma unroll
      for (const float term : fragment) sum += term;
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
  Terms sums_[ScoreSites::kHeadSums > 0 ? ScoreSites::kHeadSums : 1];  // over heads, of a tile
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
