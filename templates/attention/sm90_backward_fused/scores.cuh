// Attention backward on Hopper, dS computed once: what a consumer thread holds of a Q tile of 64 rows, and how P and dS
// come of S and dP.
#pragma once
#include "attention/dropout.cuh"  // where kDropout
#include "attention/fragment_mask.cuh"
#include "attention/operands/factors.cuh"
#include "attention/operands/pair.cuh"
#include "attention/pair.cuh"
#include "attention/sm90_backward/epilogue.cuh"
#include "attention/softmax.cuh"  // where kNumSoftmaxHeads
#include "common/fragment_store.cuh"
#include "common/ptx/ldst_shared.cuh"  // where kNumSoftmaxHeads
#include "common/regions.cuh"

namespace sm90::backward {

// Accumulator i of a thread is at column (i & 2 ? 8 : 0) + lane / 4 of its warp's 16 columns of the tile and row 8 * (i
// / 4) + 2 * (lane % 4) + (i & 1) of the Q tile.
template <class Spec, class Config, class Params>
struct TileScores {
  // Where the warpgroup's columns and the Q tile are.
  struct Coordinates {
    const TileInfo& tile;
    const MovingTileInfo& q_tile;
    int warpgroup;
  };

  static constexpr int kRows = 64;           // of a Q tile
  static constexpr int kScores = kRows / 2;  // fp32 accumulators of S a thread holds, and of dP

  float scores[kScores];     // S, then the derivative
  float gradients[kScores];  // dP
  u32 weights[kScores / 2];
  u32 score_gradients[kScores / 2];

  // P is rounded, and the derivative takes the at of S.
  __device__ __forceinline__ void activate(const Params& params, const Coordinates& at) {
#ifdef kNumSoftmaxHeads
    // look_ahead() has looked at the mask.
#elifdef kAttnFunc
    // look_ahead() has.
#else
    if constexpr (Config::kMaskFirst) look_at_mask(at);
#endif
    add_bias(params, at);
    [[maybe_unused]] float2 factors;  // of the rows of four accumulators
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      if constexpr (Spec::Factors::kOfRows) {
        if (i % 4 == 0) factors = row_factors_of(params, at, q_row(at) + i * 2);
      }
      float y[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const auto pair = [=] { return pair_of(i + j, at); };
        float dy;
#ifdef kSiteWarps
        score_grad_x(scores[i + j], pair, params, y[j], dy);
#else
        score_grad(scores[i + j], pair, params, y[j], dy);
#endif
        if constexpr (Spec::Factors::kOfRows) {
          const float factor = of_half(factors, j);
          y[j] *= factor;
          dy *= factor;
        }
        scores[i + j] = dy;
      }
      weights[i / 2] = pack_pair<Spec::kDtypeBf16>(y[0], y[1]);
    }
#ifdef kNumSoftmaxHeads
    // As above.
#elifdef kAttnFunc
    // As above.
#else
    if constexpr (!Config::kMaskFirst) look_at_mask(at);
#endif
    clear_invalid(weights);
  }

#ifdef kAttnFunc
  // Reads the rows' intervals while the product runs, before activate().
  __device__ __forceinline__ void look_ahead(const Coordinates& at) {
    mask_ = {};
    if (at.q_tile.flags & MovingTileInfo::full(at.warpgroup)) return;
    const int first_column = at.tile.row0 + at.warpgroup * kWarpgroupRows + warp_row();
    mask_ = FragmentMask<kScores>(ColumnBits<kRows>(at.q_tile.row0, first_column, at.tile.rows, at.tile.targets));
  }

#endif
#ifdef kDropout
  // While the product runs.
  __device__ __forceinline__ void draw_dropout(const Params& params, const Coordinates& at) {
    const Dropout<Params> dropout(params, at.tile.start, at.tile.head);
    kept_.draw(dropout, at.tile.row0 + at.warpgroup * kWarpgroupRows + warp_row(), at.q_tile.row0);
  }

  // In rounded pairs.
  __device__ __forceinline__ void drop_weights() {
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) {
      if (!kept_.kept(2 * i)) weights[i] &= 0xffff0000u;
      if (!kept_.kept(2 * i + 1)) weights[i] &= 0xffffu;
    }
  }

#endif
#ifdef kDropoutSoftmax
  // dP is 0 beside what begin_gradients() began it with.
  __device__ __forceinline__ void drop_gradients(u32 means) {
#pragma unroll
    for (int i = 0; i < kScores; i += 4) {
      const float2 of_pair = of_rows(means, i);
#pragma unroll
      for (int j = i; j < i + 4; ++j) gradients[j] = kept_.kept(j) ? gradients[j] : of_half(of_pair, j % 2);
    }
  }

#elifdef kDropout
  __device__ __forceinline__ void drop_gradients() {
#pragma unroll
    for (int i = 0; i < kScores; ++i) gradients[i] = kept_.kept(i) ? gradients[i] : 0.0f;
  }

#endif
  __device__ __forceinline__ void differentiate() {
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      score_gradients[i / 2] = pack_pair<Spec::kDtypeBf16>(gradients[i] * scores[i], gradients[i + 1] * scores[i + 1]);
    }
    clear_invalid(score_gradients);
  }

#ifdef kConsumerSites
  // The same, and adds what each site gets of this thread's pairs to `sums`.
  template <int kSites>
  __device__ __forceinline__ void differentiate(const Params& params, const Coordinates& at, float (&sums)[kSites]) {
    const bool all = mask_.all();
#pragma unroll
    for (int i = 0; i < kScores; ++i) gradients[i] *= scores[i];
    if (!all) {
#pragma unroll
      for (int i = 0; i < kScores; ++i) gradients[i] = mask_.valid(i) ? gradients[i] : 0.0f;
    }
    if (all && at.q_tile.row0 + kRows <= at.tile.rows && at.tile.row0 + Config::kBlockM <= at.tile.rows) {
      add_to_sites<false>(params, at, sums);
    } else {
      add_to_sites<true>(params, at, sums);
    }
#pragma unroll
    for (int i = 0; i < kScores; i += 2)
      score_gradients[i / 2] = pack_pair<Spec::kDtypeBf16>(gradients[i], gradients[i + 1]);
  }

#endif
#ifdef kNumSoftmaxHeads
  // Finds what does not follow from S while that is multiplied: registers are free then. `log2_sums`: in shared memory,
  // of the Q tile's rows.
  __device__ __forceinline__ void look_ahead(const Coordinates& at, u32 log2_sums) {
    look_at_mask(at);
#pragma unroll
    for (int i = 0; i < kScores; i += 4) log2_sums_[i / 4] = of_rows(log2_sums, i);
  }

#endif
#ifdef kSoftmaxScore
  // As activate(), in a head with softmax. dP has begin_gradients() in it by the time its derivative is of use.
  __device__ __forceinline__ void activate_by_softmax(const Params& params, const Coordinates& at) {
    add_bias(params, at);
    const float scale = softmax_scale(params);
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      float weight[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const auto pair = [=] { return pair_of(i + j, at); };
        float y, slope;
        score_grad(scores[i + j], pair, params, y, slope);
        weight[j] = softmax_exp2<Config>(y * scale - of_half(log2_sums_[i / 4], j));
        scores[i + j] = weight[j] * slope;
      }
      weights[i / 2] = pack_pair<Spec::kDtypeBf16>(weight[0], weight[1]);
    }
    clear_invalid(weights);
  }

#elifdef kNumSoftmaxHeads
  // As activate(), in a head with softmax. dP has begin_gradients() in it by the time its derivative is of use.
  __device__ __forceinline__ void activate_by_softmax(const Params& params, const Coordinates& at) {
    add_bias(params, at);
    const float scale = softmax_scale(params);
#pragma unroll
    for (int i = 0; i < kScores; i += 4) {
#pragma unroll
      for (int j = i; j < i + 4; ++j) {
        scores[j] = softmax_exp2<Config>(scores[j] * scale - of_half(log2_sums_[i / 4], j % 2));
      }
      weights[i / 2] = pack_pair<Spec::kDtypeBf16>(scores[i], scores[i + 1]);
      weights[i / 2 + 1] = pack_pair<Spec::kDtypeBf16>(scores[i + 2], scores[i + 3]);
#pragma unroll
      for (int j = i; j < i + 4; ++j) scores[j] *= params.alpha;
    }
    clear_invalid(weights);
  }

#endif
#ifdef kNumSoftmaxHeads
  // dP is added to the mean of its row, negative, which is 0 in heads without softmax. `means`: as log2_sums.
  __device__ __forceinline__ void begin_gradients(u32 means) {
#pragma unroll
    for (int i = 0; i < kScores; i += 4) {
      const float2 of_pair = of_rows(means, i);
      gradients[i] = gradients[i + 2] = of_pair.x;
      gradients[i + 1] = gradients[i + 3] = of_pair.y;
    }
  }

#endif
 private:
#ifdef kNumSoftmaxHeads
  // Numbers of the two rows of accumulators i to i + 3.
  static __device__ __forceinline__ float2 of_rows(u32 numbers, int i) {
    return ld_shared_float2(numbers + (2 * i + static_cast<int>(threadIdx.x) % 4 * 2) * sizeof(float));
  }

#endif
#ifdef kConsumerSites
  // kSomeOutside: the share of a pair with no dS is not looked at, as it may be infinite there.
  template <bool kSomeOutside, int kSites>
  __device__ __forceinline__ void add_to_sites(const Params& params, const Coordinates& at,
                                               float (&sums)[kSites]) const {
    int column = thread_column(at), row = q_row(at), number = 0;
    asm volatile("" : "+r"(column), "+r"(row));  // keeps positions of 32 pairs out of registers until here
    ScoreSites::for_each_site([&](auto site) {
      using Site = decltype(site);
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        const Pair pair = pair_of(i, row, column, at);
        if constexpr (Site::kShareIsOne) {
          sums[number] += gradients[i];
        } else {
          const float term = gradients[i] * Site::share(0.0f, [=] { return pair; }, params);
          sums[number] += kSomeOutside && gradients[i] == 0.0f ? 0.0f : term;
        }
      }
      ++number;
    });
  }

#endif
  // The pair of accumulator i.
  static __device__ __forceinline__ Pair pair_of(int i, const Coordinates& at) {
    return pair_of(i, q_row(at), thread_column(at), at);
  }

  // `row` and `column` are those of accumulator 0.
  static __device__ __forceinline__ Pair pair_of(int i, int row, int column, const Coordinates& at) {
    const int down = i / 4 * 8 + (i & 1), right = i & 2 ? 8 : 0;
    return {row + down, column + right, at.tile.rows, at.tile.targets, at.tile.head, at.tile.start, down - right};
  }

  // Which pairs are valid. Those past the sequence's end may be either: operands are zero there.
  __device__ __forceinline__ void look_at_mask(const Coordinates& at) {
    mask_ = {};
    if (at.q_tile.flags & MovingTileInfo::full(at.warpgroup)) return;
    int column = thread_column(at), row = q_row(at);
    asm volatile("" : "+r"(column), "+r"(row));
    mask_ = FragmentMask<kScores>([&](int half, int further) {
#ifdef kNumSoftmaxHeads
      // Columns past the sequence's end, whose S is 0, are not valid: where S of a row is far below 0 throughout, their
      // P is infinite. A tile that has some of them is not full.
      const u32 seen = mask_column_bits(column + 8 * half, row + further, at.tile.rows, at.tile.targets);
      return column + 8 * half < at.tile.rows ? seen : 0u;
#else
      return mask_column_bits(column + 8 * half, row + further, at.tile.rows, at.tile.targets);
#endif
    });
  }

  // First of this thread's columns of the tile, within the sequence.
  static __device__ __forceinline__ int thread_column(const Coordinates& at) {
    return at.tile.row0 + at.warpgroup * kWarpgroupRows + thread_row();
  }

  // First of this thread's rows of the Q tile, within the sequence.
  static __device__ __forceinline__ int q_row(const Coordinates& at) {
    return at.q_tile.row0 + static_cast<int>(threadIdx.x) % 4 * 2;
  }

  __device__ __forceinline__ float2 row_factors_of(const Params& params, const Coordinates& at, int row) const {
    return RowFactors<Spec, Params>(params, at.tile.start, at.tile.rows).pair(row);
  }

  __device__ __forceinline__ void add_bias(const Params& params, const Coordinates& at) {
#ifdef kBiasInShared
    // S has begun with it.
#else
    if constexpr (Spec::Bias::kHeads > 0) {
      int sequence = at.tile.sequence(), row = q_row(at), column = thread_column(at);
      // As in look_at_mask().
      asm volatile("" : "+r"(sequence), "+r"(row), "+r"(column));
      HeadBias<Spec, Params>(params, sequence, at.tile.head, at.tile.rows)
          .template add_transposed<kScores>(row, column, scores);
    }
#endif
  }

  // In rounded pairs.
  __device__ __forceinline__ void clear_invalid(u32 (&words)[kScores / 2]) {
    if (mask_.all()) return;
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) {
      if (!mask_.valid(2 * i)) words[i] &= 0xffff0000u;
      if (!mask_.valid(2 * i + 1)) words[i] &= 0xffffu;
    }
  }

  FragmentMask<kScores> mask_;  // of the accumulators of S and dP
#ifdef kDropout
  KeptPairs<kScores, true> kept_;  // of the same
#endif
#ifdef kNumSoftmaxHeads
  float2 log2_sums_[kScores / 4];
#endif
};

}  // namespace sm90::backward
