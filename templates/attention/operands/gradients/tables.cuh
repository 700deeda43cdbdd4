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
#include "attention/operands/gradients/store.cuh"
#include "attention/operands/gradients/table_scatter.cuh"

namespace operand_gradients {

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
#ifdef kDropout
    column_ &= ~15;  // what is drawn is of 16 columns
#else
    if constexpr (Config::kEvenTiles) column_ &= ~1;
#endif
    end_ = min(end_, sequence.rows);
    head_ = 0;
  }

  // Called by TilePairs::run().
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
#ifdef ScoreValueSites
    add_by_value(tile, fragment, full, scores, gradients);
#else
    add_by_site(tile, fragment, full, scores, gradients);
#endif
  }

 private:
  // Bit 4 * j + e: the pair has a share in the sums.
  __device__ __forceinline__ u32 counted(const KvTile& tile, const Fragment<Spec>& fragment, bool full) const {
#ifdef kDropoutSoftmax
    const u32 seen = fragment.valid(sequence_, full) & fragment.kept(params_, sequence_, tile.head);
    return is_softmax_head<Spec>(tile.head) ? 0 : seen;  // softmax reads nothing
#elifdef kNumSoftmaxHeads
    return is_softmax_head<Spec>(tile.head) ? 0 : fragment.valid(sequence_, full);  // softmax reads nothing
#elifdef kDropout
    return fragment.valid(sequence_, full) & fragment.kept(params_, sequence_, tile.head);
#else
    return fragment.valid(sequence_, full);
#endif
  }

#ifdef ScoreValueSites
  // Adds up over the heads what the value's derivative is multiplied by, and then what each site gets of that.
  __device__ __forceinline__ void add_by_value(const KvTile& tile, const Fragment<Spec>& fragment, bool full,
                                               const Scores& scores, const Scores& gradients) {
    const u32 valid = counted(tile, fragment, full);
    const auto factors =
        thread_factors(row_factors<Spec>(params_, sequence_.query_start, sequence_.rows), fragment.row);
    Terms terms;
    if (tile.head == 0) {
      clear_terms(terms);
      find_values(fragment);
    } else {
      get_head_sums(terms);
    }
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto at = [=] { return fragment.pair(j, e, sequence_, tile.head); };
        const float slope = score_value_slope(scores[0][j][e], values_[j][e], at, params_) * of_half(factors, e / 2);
        terms[j][e] += valid >> (4 * j + e) & 1 ? gradients[0][j][e] * slope : 0.0f;
      }
    }
    if (tile.head == Spec::kHeads - 1) {
      ScoreValueSites::for_each_site([&](auto site) { add_shared<decltype(site)>(terms, fragment, scores); });
    } else {
      set_head_sums(terms);
    }
  }

#endif
  __device__ __forceinline__ void add_by_site(const KvTile& tile, const Fragment<Spec>& fragment, bool full,
                                              const Scores& scores, const Scores& gradients) {
#ifdef kSoftmaxScore
    const PassedOn<Spec, Config, Params> passed_on(params_, sequence_, tile.head, fragment);
    const u32 valid = fragment.valid(sequence_, full) & passed_on.counting();
#else
    const u32 valid = counted(tile, fragment, full);
    const auto factors =
        thread_factors(row_factors<Spec>(params_, sequence_.query_start, sequence_.rows), fragment.row);
#endif
    const auto add_slopes = [&](auto of, Terms& sums) {
#pragma unroll
      for (int j = 0; j < kFragments; ++j) {
        Fragment<Spec> own = fragment;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (e % kLoadedTogether == 0) make_unknown(own);
          const auto at = [=] { return own.pair(j, e, sequence_, tile.head); };
#ifdef kSoftmaxScore
          // Found anew for each site: no registers are left for a tile's.
          const float passed = passed_on.of(j, e, scores[0][j][e], gradients[0][j][e], own.row_of(e), at);
          const float slope = decltype(of)::slope(scores[0][j][e], at, params_);
          sums[j][e] += valid >> (4 * j + e) & 1 ? passed * slope : 0.0f;
#else
          const float slope = decltype(of)::slope(scores[0][j][e], at, params_) * of_half(factors, e / 2);
          sums[j][e] += valid >> (4 * j + e) & 1 ? gradients[0][j][e] * slope : 0.0f;
#endif
          operand_gradients::make_unknown(sums[j][e]);
        }
      }
    };
    ScoreSites::for_each_head_sum([&](auto head_sum) {
      Terms terms;
      tile.head == 0 ? clear_terms(terms) : get_head_sums(terms);
      add_slopes(head_sum, terms);
      set_head_sums(terms);
    });
    ScoreSites::for_each_site([&](auto site) {
      using Site = decltype(site);
      Terms terms;
      clear_terms(terms);
      add_slopes(site, terms);
      if constexpr (Site::kOfTable) {
        add_to_table<Site>(terms, fragment, tile.head, scores);
      } else {
        add_to_element(terms, Site::kFirst - ScoreSites::kTables + tile.head / Site::kGroup);
      }
    });
    if (tile.head < Spec::kHeads - 1) return;
    ScoreSites::for_each_summed_site([&](auto site) {
      Terms terms;
      get_head_sums(terms);
      add_to_table<decltype(site)>(terms, fragment, tile.head, scores);
    });
  }

  // Keeps nothing that is read for a pair for another site.
  static __device__ __forceinline__ void make_unknown(Fragment<Spec>& fragment) {
    operand_gradients::make_unknown(fragment.row);
    operand_gradients::make_unknown(fragment.column);
  }

  // Pairs whose loads may wait at a time: with many sites they need more registers.
  static constexpr int kLoadedTogether = ScoreSites::kSites > 4 ? 1 : 4;

  static __device__ __forceinline__ void clear_terms(Terms& terms) {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) terms[j][e] = 0.0f;
    }
  }

#ifdef ScoreValueSites
  // The part of the score that all heads share, for this thread's pairs.
  __device__ __forceinline__ void find_values(const Fragment<Spec>& fragment) {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
      Fragment<Spec> own = fragment;
      make_unknown(own);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        values_[j][e] = score_value(0.0f, [=] { return own.pair(j, e, sequence_, 0); }, params_);
    }
  }

  // Adds a site's terms: the sums over the heads times its share in the value. Where a sum is 0 the share is not looked
  // at: pairs that nobody sees may read what is infinite.
  template <class Site>
  __device__ __forceinline__ void add_shared(const Terms& sums, const Fragment<Spec>& fragment, const Scores& scores) {
    Terms terms;
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
      Fragment<Spec> own = fragment;
      if constexpr (!Site::kShareIsOne) make_unknown(own);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        terms[j][e] = sums[j][e];
        if constexpr (!Site::kShareIsOne) {
          const float share = Site::share(0.0f, [=] { return own.pair(j, e, sequence_, 0); }, params_);
          terms[j][e] = sums[j][e] == 0.0f ? 0.0f : sums[j][e] * share;
        }
      }
    }
    if constexpr (Site::kOfTable) {
      add_to_table<Site>(terms, fragment, 0, scores);
    } else {
      add_to_element(terms, Site::kFirst - ScoreSites::kTables);
    }
  }

#endif
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

  __device__ __forceinline__ void set_head_sums(const Terms& terms) const {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) head_sums(j) = make_float4(terms[j][0], terms[j][1], terms[j][2], terms[j][3]);
  }

  template <class Site>
  __device__ __forceinline__ void add_to_table(const Terms& terms, const Fragment<Spec>& fragment, int head,
                                               const Scores& scores) {
    Entries entries;
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
      Fragment<Spec> own = fragment;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (e % kLoadedTogether == 0) make_unknown(own);
        const auto at = [=] { return own.pair(j, e, sequence_, head); };
        entries[j][e] = static_cast<u32>(Site::entry(scores[0][j][e], at, params_));
        operand_gradients::make_unknown(entries[j][e]);
      }
    }
#ifdef ScoreValueSites
    scatter_.add(terms, entries, memory_.tables + Site::kFirst);
#else
    scatter_.add(terms, entries, memory_.tables + Site::kFirst + head / Site::kGroup * Site::kEntries);
#endif
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
#ifdef ScoreValueSites
  Terms values_;
#endif
};

// Stores the gradient of an entry, of an element of a head or of a scalar.
template <class Operand, class Params>
__device__ __forceinline__ void store_element(const Params& params, int entry, int head, float sum) {
  const auto place = [&](auto tensor) {
    if constexpr (Operand::kByHead) {
      return entry * decltype(tensor)::row_stride(params) + head;
    } else {
      return static_cast<i64>(entry + head);  // one of them is 0
    }
  };
  store_gradient<Operand>(params, place, sum);
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
  const i64 tiles = ceil_div(max_sequence_rows<Config>(params), kTileSize);
  for (i64 item = blockIdx.x; item < tiles * params.batch; item += gridDim.x) {
    const int index = static_cast<int>(item % params.batch);
    const int first = static_cast<int>(tiles - 1 - item / params.batch) * kTileSize;
    const Sequence sequence = sequence_of<Spec, Config>(params, index);
    const int row0 = first_query_row(sequence) + first;
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
