// Attention backward: what the kernels of the gradients have to know of each row of a head with softmax. A CTA has 64
// rows of a sequence and head, and computes S and dP of the columns that they see once more, by mma.sync.
#pragma once
#include "attention/operands/gradients/kernels.cuh"
#include "attention/softmax.cuh"

namespace operand_gradients {

// The largest S of this thread's two rows in its columns, and relative to it the sums of weights and of weights times
// dP.
template <class Spec, class Config, class Params>
class SoftmaxSums {
 public:
  __device__ __forceinline__ SoftmaxSums(const Params& params, const Sequence& sequence, int row0, int head)
      : params_(params), sequence_(sequence), row0_(row0), head_(head) {
    mask_columns(row0, min(row0 + kTileSize, sequence.rows) - 1, sequence.rows, sequence.targets, column_, end_);
    column_ = max(column_, 0);
#ifdef kDropout
    column_ &= ~15;  // what is drawn is of 16 columns
#else
    if constexpr (Config::kEvenTiles) column_ &= ~1;
#endif
    end_ = min(end_, sequence.rows);
  }

  // Called by TilePairs::run().
  __device__ __forceinline__ bool next(KvTile& kv_tile) {
    while (column_ < end_) {
      kv_tile = {head_, column_};
      column_ += kTileSize;
      bool full, visible;
      classify<Spec>(sequence_, row0_, kv_tile.column0, full, visible);
      if (visible) return true;
    }
    return false;
  }
  __device__ __forceinline__ void add(const KvTile& kv_tile, const Scores& scores, const Scores& gradients) {
    bool full, visible;
    classify<Spec>(sequence_, row0_, kv_tile.column0, full, visible);
    const u32 valid = Fragment<Spec>(row0_, kv_tile.column0).valid(sequence_, full);
#ifdef kDropout
    const u32 kept = Fragment<Spec>(row0_, kv_tile.column0).kept(params_, sequence_, head_);
#endif
    const float scale = softmax_scale(params_);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = largest_[half];
      for_each(half, valid, [&](int j, int e) { largest = fmaxf(largest, scores[0][j][e] * scale); });
      const float base = softmax_base(largest);
      move_to(half, base);
      largest_[half] = largest;
      for_each(half, valid, [&](int j, int e) {
        const float weight = softmax_exp2<Config>(scores[0][j][e] * scale - base);
        sums_[half] += weight;
#ifdef kDropout
        products_[half] += kept >> (4 * j + e) & 1 ? weight * gradients[0][j][e] : 0.0f;
#else
        products_[half] += weight * gradients[0][j][e];
#endif
      });
    }
  }

  // `first`: what row 0 of the sequence has in this head.
  __device__ __forceinline__ void store(float2* first) {
    const Fragment<Spec> fragment(row0_, 0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float base = softmax_base(quad_max(largest_[half]));
      move_to(half, base);
      const float sum = quad_sum(sums_[half]), product = quad_sum(products_[half]);
      const int row = fragment.row + 8 * half;
      if (threadIdx.x % 4 != 0 || row >= sequence_.rows) continue;
      first[static_cast<i64>(row) * Spec::kNumSoftmaxHeads] =
          sum == 0.0f ? make_float2(-negative_infinity(), 0.0f) : make_float2(base + log2f(sum), product / sum);
    }
  }

 private:
  template <class What>
  static __device__ __forceinline__ void for_each(int half, u32 valid, const What& what) {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        if (valid >> (4 * j + 2 * half + odd) & 1) what(j, 2 * half + odd);
      }
    }
  }

  __device__ __forceinline__ void move_to(int half, float base) {
    const float kept = softmax_exp2<Config>(largest_[half] - base);
    sums_[half] *= kept;
    products_[half] *= kept;
  }

  const Params& params_;
  const Sequence sequence_;
  const int row0_, head_;
  int column_, end_;  // of the columns that the rows see
  float largest_[2] = {negative_infinity(), negative_infinity()};
  float sums_[2] = {0.0f, 0.0f}, products_[2] = {0.0f, 0.0f};
};

#ifdef kSoftmaxScore
// The same for TilePairs::run(), of scores of S.
template <class Spec, class Config, class Params>
struct ScoredSums {
  SoftmaxSums<Spec, Config, Params>& sums;
  const Params& params;
  const Sequence& sequence;
  int row0;

  __device__ __forceinline__ bool next(KvTile& kv_tile) { return sums.next(kv_tile); }
  __device__ __forceinline__ void add(const KvTile& kv_tile, const Scores& products, const Scores& gradients) {
    const Fragment<Spec> fragment(row0, kv_tile.column0);
    Scores scores;
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto at = [=] { return fragment.pair(j, e, sequence, kv_tile.head); };
        scores[0][j][e] = score(products[0][j][e], at, params);
      }
    }
    sums.add(kv_tile, scores, gradients);
  }
};

#endif
}  // namespace operand_gradients

// One CTA per (sequence, head with softmax, tile of rows). Comes before attention_gradients() of the template.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace operand_gradients;
  __shared__ __align__(128) unsigned char static_bytes[kStaticBytes];
  const u32 tiles = ceil_div(max_sequence_rows<Config>(params), kTileSize), place = blockIdx.x / tiles;
  const int head = static_cast<int>(place % Spec::kNumSoftmaxHeads);
  const int index = static_cast<int>(place / Spec::kNumSoftmaxHeads);
#ifdef kAttnFunc
  Sequence sequence = sequence_of<Spec, Config>(params, index);
  sequence.targets = intervals_of<Spec>(params, sequence, head);
#else
  const Sequence sequence = sequence_of<Spec, Config>(params, index);
#endif
  const int row0 = first_query_row(sequence) + static_cast<int>(blockIdx.x % tiles) * kTileSize;
  if (row0 >= sequence.rows) return;
  SoftmaxSums<Spec, Config, Params> sums(params, sequence, row0, head);
#ifdef kSoftmaxScore
  ScoredSums<Spec, Config, Params> scored{sums, params, sequence, row0};
  TilePairs<Spec, Params>(params, sequence, index, shared_address(static_bytes), row0).run(scored);
#else
  TilePairs<Spec, Params>(params, sequence, index, shared_address(static_bytes), row0).run(sums);
#endif
  sums.store(params.softmax_rows + sequence.query_start * Spec::kNumSoftmaxHeads + head);
}
