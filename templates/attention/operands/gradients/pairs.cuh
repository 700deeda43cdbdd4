// Attention backward: the gradient of an operand with an element for each pair, by a kernel of its own that follows the
// one of q, k and v.
//
// A CTA has a tile of 64 rows and 64 columns of a head of the operand, and adds up over the heads that share it, in
// their order: every run gives the same bits. `Slopes` is printed from the operand.
#pragma once
#include "attention/operands/gradients/kernels.cuh"
#include "attention/operands/gradients/store.cuh"

namespace operand_gradients {

template <class Spec, class Config, class Params, class Slopes>
class PairSlopes {
 public:
  __device__ __forceinline__ PairSlopes(const Params& params, const Sequence& sequence, int own_head, int row0,
                                        int column0, bool full, bool visible)
      : params_(params),
        sequence_(sequence),
        fragment_(row0, column0),
        own_head_(own_head),
        valid_(visible ? fragment_.valid(sequence, full) : 0) {
#pragma unroll
    for (auto& fragment : sums_) {
#pragma unroll
      for (float& sum : fragment) sum = 0.0f;
    }
  }

  // Called by TilePairs::run().
  __device__ __forceinline__ bool next(KvTile& kv_tile) {
    if (heads_ == kHeads) return false;
    kv_tile = {own_head_ * kHeads + heads_++, fragment_.column};
    return true;
  }
  __device__ __forceinline__ void add(const KvTile& kv_tile, const Scores& scores, const Scores& gradients) {
#ifdef kSoftmaxScore
    // All heads may read it.
#elifdef kNumSoftmaxHeads
    if (is_softmax_head<Spec>(kv_tile.head)) return;  // softmax reads nothing
#endif
#ifdef kSoftmaxScore
    const PassedOn<Spec, Config, Params> passed_on(params_, sequence_, kv_tile.head, fragment_);
    const u32 added = valid_ & passed_on.counting();
#elifdef kDropout
    const u32 added = valid_ & fragment_.kept(params_, sequence_, kv_tile.head);
#else
    const u32 added = valid_;
#endif
#ifdef kSoftmaxScore
    // Factors of rows are in what is passed on.
#else
    const auto factors = row_factors<Spec>(params_, sequence_.query_start, sequence_.rows);
#endif
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto at = [=] { return fragment_.pair(j, e, sequence_, kv_tile.head); };
        const float slope = Slopes::of_row(scores[0][j][e], at, params_);
#ifdef kSoftmaxScore
        const float own = passed_on.of(j, e, scores[0][j][e], gradients[0][j][e], fragment_.row_of(e), at);
        sums_[j][e] += added >> (4 * j + e) & 1 ? own * slope : 0.0f;
#else
        const float of_row = slope * factor_of(factors, fragment_.row_of(e));
        sums_[j][e] += added >> (4 * j + e) & 1 ? gradients[0][j][e] * of_row : 0.0f;
#endif
      }
    }
  }

  // Stores the tile in the gradient of sequence `index` of the batch.
  __device__ __forceinline__ void store(int index) const {
    const int size = params_.max_seq_len;
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = fragment_.row_of(e), column = fragment_.column_of(j, e);
        if (row >= size || column >= size) continue;
        const auto place = [&](auto tensor) {
          using Tensor = decltype(tensor);
          return index * Tensor::batch_stride(params_) + own_head_ * Tensor::head_stride(params_) +
                 row * Tensor::row_stride(params_) + column;
        };
        store_gradient<Slopes>(params_, place, sums_[j][e]);
      }
    }
  }

 private:
  static constexpr int kHeads = Spec::kHeads / Slopes::kPairHeads;

  const Params& params_;
  const Sequence sequence_;
  const Fragment<Spec> fragment_;
  const int own_head_;
  const u32 valid_;
  int heads_ = 0;  // so many are done
  float sums_[kFragments][4];
};

}  // namespace operand_gradients

// One CTA per (sequence, head of the operand, tile). Writes all of the gradient, zeroes where there is nothing to add
// up.
template <class Slopes>
struct PairGradient {
  template <class Spec, class Config, class Params>
  static __device__ __forceinline__ void run(const Params& params) {
    using namespace operand_gradients;
    __shared__ __align__(128) unsigned char static_bytes[kStaticBytes];
    const u32 tiles = ceil_div(params.max_seq_len, kTileSize), place = blockIdx.x / tiles / tiles;
    const int first_row = static_cast<int>(blockIdx.x / tiles % tiles) * kTileSize;
    const int column0 = static_cast<int>(blockIdx.x % tiles) * kTileSize;
    const int own_head = static_cast<int>(place % Slopes::kPairHeads);
    const int index = static_cast<int>(place / Slopes::kPairHeads);
    const Sequence sequence = sequence_of<Spec, Config>(params, index);
    const int row0 = first_query_row(sequence) + first_row;
    if constexpr (Config::kDelta) {
      using Gradient = typename Slopes::Gradient;
      const i64 first = index * Gradient::batch_stride(params) + own_head * Gradient::head_stride(params);
      clear_rows_without_query(sequence, Gradient::data(params) + first, Gradient::row_stride(params),
                               params.max_seq_len, first_row, column0);
    }
    bool full, visible;
    classify<Spec>(sequence, row0, column0, full, visible);
    visible = visible && Slopes::kByRow;
    PairSlopes<Spec, Config, Params, Slopes> slopes(params, sequence, own_head, row0, column0, full, visible);
    if constexpr (Slopes::kByRow) {
      if (visible) TilePairs<Spec, Params>(params, sequence, index, shared_address(static_bytes), row0).run(slopes);
    }
    slopes.store(index);
  }
};
