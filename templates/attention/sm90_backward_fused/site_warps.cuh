// Attention backward on Hopper, dS computed once: the warps that add up the gradients of tables, of elements of heads
// and of scalars, where what is read of these is added to x. A pair's term is then dS over alpha times a number that
// follows from the pair alone, the site's share.
//
// dS is staged for dq anyway, rounded, and without the factor alpha where these warps are. Each of them has some
// columns of the KV tile, and sums of its own in shared memory. Terms that go to a table are added as integers, which
// shared memory adds by itself, in steps of 2^-13 or less of the largest one of the Q tile. What the warps have at the
// end is added up as in operands/gradients/tables.cuh. ScoreSites is printed from the instance's operands.
#pragma once
#include "attention/operands/factors.cuh"
#include "attention/pair.cuh"
#include "attention/sm90_backward_fused/shared.cuh"
#include "common/pack.cuh"
#include "common/regions.cuh"

namespace sm90::backward {

// One of the warps. A lane has a column, or two.
template <class Spec, class Config, class Params>
class SiteWarp {
 public:
  __device__ __forceinline__ SiteWarp(FusedShared<Config>& shared, const Params& params, int warp)
      : shared_(shared), params_(params), sums_(shared.site_sums[warp]), warp_(warp) {}

  __device__ __forceinline__ void run() {
    constexpr int kWords = sizeof(SiteSums) / sizeof(u32);
    for (int i = lane(); i < kWords; i += 32) reinterpret_cast<u32*>(&sums_)[i] = 0;
    __syncwarp();
    while (true) {
      mbarrier_wait(shared_address(&shared_.exchanged[staged_.stage()]), staged_.phase());
      tile_ = shared_.exchanged_tile[staged_.stage()];
      if (tile_.rows == ExchangedTile::kNoMore) break;
      add();
      release_warp<Config::kLanesArrive>(shared_.exchange_read[staged_.stage()]);
      staged_.advance();
    }
    store();
  }

 private:
  static constexpr int kColumns = Config::kBlockM / Config::kSiteWarps;  // of the warp
  static constexpr int kRows = kSwizzleBytes / 2;                        // of a Q tile
  static constexpr int kPiece = 8;                                       // rows that a lane loads at a time
  static constexpr u32 kInfinity = 0x7f800000;  // the bits of what is no number are above it, those of numbers below
  static constexpr u32 kMostAdded = 15;         // times the terms of a Q tile, in integers
  static_assert(kColumns % 32 == 0 && kColumns <= 64, "each lane has as many columns");

  static __device__ __forceinline__ int lane() { return threadIdx.x % 32; }

  // Calls use(words, pair_at) for each 8 pairs of this lane, which are of one column and of rows in order: `words` have
  // dS of two each.
  template <class Use>
  __device__ __forceinline__ void for_each_piece(const Use& use) const {
    const unsigned char* const exchange = shared_.exchange[staged_.stage()];
#pragma unroll 1
    for (int own = lane(); own < kColumns; own += 32) {
      const int column = warp_ * kColumns + own;
      if (tile_.column0 + column >= tile_.rows) continue;
#pragma unroll 1
      for (int first = 0; first < kRows; first += kPiece) {
        const int swizzled = (first / kPiece ^ column) % 8;
        const uint4 four = *reinterpret_cast<const uint4*>(exchange + column * kSwizzleBytes + swizzled * 16);
        const u32 words[4] = {four.x, four.y, four.z, four.w};
        use(words, [=](int i) {
          return Pair{
              tile_.row0 + first + i, tile_.column0 + column, tile_.rows, tile_.targets, tile_.head, tile_.start, i};
        });
      }
    }
  }

  // What pair i of a piece adds to what the site reads. Where dS is 0, the share is not looked at: rows behind the
  // sequence may read what is infinite.
  template <class Site, class PairAt>
  __device__ __forceinline__ float term(const u32 (&words)[4], int i, const PairAt& pair_at) const {
    const u32 word = words[i / 2];
    const float ds = i % 2 == 0 ? unpack_low<Spec::kDtypeBf16>(word) : unpack_high<Spec::kDtypeBf16>(word);
    if constexpr (Site::kShareIsOne) return ds;
    return ds == 0.0f ? 0.0f : ds * Site::share(0.0f, [=] { return pair_at(i); }, params_);
  }

  template <class Site, class PairAt>
  __device__ __forceinline__ u32 entry(int i, const PairAt& pair_at) const {
    return static_cast<u32>(Site::entry(0.0f, [=] { return pair_at(i); }, params_));
  }

  template <class Use>
  static __device__ __forceinline__ void for_each_site(const Use& use) {
    ScoreSites::for_each_site(use);
    ScoreSites::for_each_summed_site(use);
  }
  // Calls use(site) for each site that reads the table.
  template <class Operand, class Use>
  static __device__ __forceinline__ void for_each_site_of(const Use& use) {
    for_each_site([&](auto site) {
      using Site = decltype(site);
      if constexpr (Site::kOfTable && Site::kFirst == Operand::kFirst) use(site);
    });
  }

  __device__ __forceinline__ void add() {
    for_each_site([&](auto site) {
      using Site = decltype(site);
      if constexpr (!Site::kOfTable) add_to_element<Site>();
    });
    ScoreSites::for_each_operand([&](auto operand) {
      using Operand = decltype(operand);
      if constexpr (Operand::kFirst < ScoreSites::kTables) add_to_table<Operand>();
    });
  }

  template <class Site>
  __device__ __forceinline__ void add_to_element() {
    float sum = 0.0f;
    for_each_piece([&](const u32(&words)[4], const auto& pair_at) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i) sum += term<Site>(words, i, pair_at);
    });
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    const int element = Site::kFirst - ScoreSites::kTables + tile_.head / Site::kGroup;
    if (lane() == 0) sums_.others[element] += sum;
  }

  // The bits of the largest term of the Q tile, without its sign.
  template <class Operand>
  __device__ __forceinline__ u32 find_largest() const {
    u32 largest = 0;
    for_each_site_of<Operand>([&](auto site) {
      for_each_piece([&](const u32(&words)[4], const auto& pair_at) {
#pragma unroll
        for (int i = 0; i < kPiece; ++i)
          largest = max(largest, __float_as_uint(fabsf(term<decltype(site)>(words, i, pair_at))));
      });
    });
    return __reduce_max_sync(~0u, largest);
  }

  template <class Operand>
  __device__ __forceinline__ void add_to_table() {
    const u32 largest = find_largest<Operand>();
    if (largest == 0) return;
    if (largest >= kInfinity) {
      add_what_is_no_number<Operand>();
      return;
    }
    u32 sites = 0;
    for_each_site_of<Operand>([&](auto) { ++sites; });
    // The largest becomes less than 2^15, so that the terms of 15 Q tiles with 64 rows and 64 columns fit. A step that
    // is up to 4 times as small as that is kept, as flushing takes its time.
    const u32 wanted = min(268 - (largest >> 23), 253u);
    u32 exponent = sums_.exponents[Operand::kNumber], added = sums_.added[Operand::kNumber];
    __syncwarp();
    if (wanted < exponent || wanted > exponent + 2 || added + sites > kMostAdded) {
      flush<Operand>(exponent);
      exponent = wanted;
      added = 0;
    }
    if (lane() == 0) {
      sums_.exponents[Operand::kNumber] = exponent;
      sums_.added[Operand::kNumber] = added + sites;
    }
    const float times = __uint_as_float(exponent << 23);
    for_each_site_of<Operand>([&](auto site) {
      using Site = decltype(site);
      int* const integers = sums_.integers + Site::kFirst + tile_.head / Site::kGroup * Site::kEntries;
      for_each_piece(
          [&](const u32(&words)[4], const auto& pair_at) { add_piece<Site>(words, pair_at, times, integers); });
    });
    __syncwarp();
  }

  template <class Site, class PairAt>
  __device__ __forceinline__ void add_piece(const u32 (&words)[4], const PairAt& pair_at, float times,
                                            int* integers) const {
    // Entries of all pairs first: what is loaded for one takes its time as that of the others does.
    u32 entries[kPiece];
    int terms[kPiece];
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
      constexpr float kRounds = 12582912.0f;  // 1.5 * 2^23: numbers nearby are integers
      entries[i] = entry<Site>(i, pair_at);
      const float rounded = fmaf(term<Site>(words, i, pair_at), times, kRounds);
      terms[i] = static_cast<int>(__float_as_uint(rounded) - __float_as_uint(kRounds));
    }
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
      // Neighbours that go to one entry are added up first: where entries follow from what is read, lanes have the
      // same.
      if (Site::kReads && i + 1 < kPiece && entries[i] == entries[i + 1]) {
        terms[i + 1] += terms[i];
      } else {
        atomicAdd(integers + entries[i], terms[i]);
      }
    }
  }

  // Adds the terms of a Q tile one by one, some of which are infinite or NaN.
  template <class Operand>
  __device__ __forceinline__ void add_what_is_no_number() {
    for_each_site_of<Operand>([&](auto site) {
      using Site = decltype(site);
      float* const sums = sums_.tables + Site::kFirst + tile_.head / Site::kGroup * Site::kEntries;
      for_each_piece([&](const u32(&words)[4], const auto& pair_at) {
#pragma unroll
        for (int i = 0; i < kPiece; ++i) atomicAdd(sums + entry<Site>(i, pair_at), term<Site>(words, i, pair_at));
      });
    });
    __syncwarp();
  }

  // Adds a table's integers to its sums.
  template <class Operand>
  __device__ __forceinline__ void flush(u32 exponent) {
    if (exponent == 0) return;
    const float step = __uint_as_float((254 - exponent) << 23);
    for (int i = lane(); i < Operand::kEntries * Operand::kHeads; i += 32) {
      sums_.tables[Operand::kFirst + i] += static_cast<float>(sums_.integers[Operand::kFirst + i]) * step;
      sums_.integers[Operand::kFirst + i] = 0;
    }
    __syncwarp();
  }

  // Stores the sums of all tiles, times the factor that rows have in common: factors of rows are in dS.
  __device__ __forceinline__ void store() {
    ScoreSites::for_each_operand([&](auto operand) {
      using Operand = decltype(operand);
      if constexpr (Operand::kFirst < ScoreSites::kTables) flush<Operand>(sums_.exponents[Operand::kNumber]);
    });
    constexpr int kElements = ScoreSites::kTables + ScoreSites::kOthers;
    const float factor = common_factor<Spec>(params_);
    float* const to = params_.site_sums + (static_cast<i64>(blockIdx.x) * Config::kSiteWarps + warp_) * kElements;
    for (int i = lane(); i < kElements; i += 32)
      to[i] = factor * (i < ScoreSites::kTables ? sums_.tables[i] : sums_.others[i - ScoreSites::kTables]);
    if (blockIdx.x == 0 && warp_ == 0 && lane() == 0)
      *params_.site_blocks = static_cast<int>(gridDim.x) * Config::kSiteWarps;
  }

  FusedShared<Config>& shared_;
  const Params& params_;
  SiteSums& sums_;
  const int warp_;
  PipelineState<kExchangeBuffers> staged_;
  ExchangedTile tile_;
};

}  // namespace sm90::backward
