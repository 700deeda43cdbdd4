// hstu_attention backward on Ampere and Ada: a tile that a CTA owns, and the tiles that pass by it. What the products
// call a query is of the tile that it owns.
#pragma once
#include "attention/dropout.cuh"  // where kDropout
#include "attention/sequence.cuh"
#include "attention/sm80/bias.cuh"
#include "attention/sm80/cta_place.cuh"
#include "attention/sm80/load.cuh"
#include "attention/sm80/products.cuh"
#include "attention/sm80/store.cuh"
#include "attention/sm80_backward/roles.cuh"
#include "attention/sm80_backward/shared.cuh"
#include "attention/softmax.cuh"  // where kNumSoftmaxHeads
#include "common/math.cuh"
#include "common/regions.cuh"

namespace sm80 {

template <class Spec, class Config, class Params, class Role>
class BackwardWorker {
 public:
  __device__ __forceinline__ BackwardWorker(const Params& params, u32 shared, const Sequence& sequence,
                                            const CtaPlace& place, int own0)
      : params_(params),
        shared_(shared),
        sequence_(sequence),
        sequence_index_(place.sequence),
        head_(place.head),
        own0_(own0),
        warp_own0_(own0 + static_cast<int>(threadIdx.x) / 32 * S::kWarpRows) {}

  __device__ __forceinline__ void run() {
    prepare();
    walk_moving_tiles<Config::kStages>(MovingTileCursor<Spec, Config, typename Role::View>(own0_, sequence_), *this);
    // The derivative of the score has the factor alpha.
    if constexpr (Role::kAttnGradient) store<Attn>(Role::attn_gradient(params_), attn_sums_);
    if constexpr (Role::kHiddenGradient) store<Hidden>(Role::hidden_gradient(params_), hidden_sums_);
  }

  // Called by walk_moving_tiles().
  __device__ __forceinline__ void load_moving(const MovingTile& tile, int stage) {
    load<Config::kBlockN, true, !Role::kRows>(Role::other_attn(params_), Role::other_hidden(params_), tile.first,
                                              stage_tile(stage));
  }

  __device__ __forceinline__ void round_own() { round<Config::kBlockM, Role::kAttnGradient>(own_tile()); }
  __device__ __forceinline__ void round_moving(int stage) { round<Config::kBlockN, true>(stage_tile(stage)); }

  __device__ __forceinline__ void own_arrived() {
    const int row = warp_own0_ - own0_;
    attn_.set_queries(own_tile() + row * Attn::QkTile::kRowBytes);
    if constexpr (Role::kAttnGradient) {
      hidden_.set_queries(own_tile() + Own::kHiddenOffset + row * Hidden::QkTile::kRowBytes);
    }
  }

  // A tile that is not valid throughout is looked at again, chunk by chunk and for this warp's rows alone.
  __device__ __forceinline__ void multiply(const MovingTile& tile, int stage) {
    if (warp_own0_ >= sequence_.rows) return;
    if (tile.full) {
#pragma unroll 1
      for (int chunk = 0; chunk < S::kChunks; ++chunk) {
        multiply_chunk(stage, chunk, tile.first + chunk * Config::kChunkColumns, true);
      }
      return;
    }
    const int own1 = min(warp_own0_ + S::kWarpRows, sequence_.rows) - 1;
#pragma unroll 1
    for (int chunk = 0; chunk < S::kChunks; ++chunk) {
      const int other0 = tile.first + chunk * Config::kChunkColumns;
      if (other0 >= sequence_.rows) return;
      bool full = true, visible = true;
      if constexpr (!Spec::kMaskTrivial) {
        Role::View::tile(warp_own0_, own1, other0, min(other0 + Config::kChunkColumns, sequence_.rows) - 1, sequence_,
                         full, visible);
        if (!visible) continue;
      }
      multiply_chunk(stage, chunk, other0, full && other0 + Config::kChunkColumns <= sequence_.rows);
    }
  }

 private:
  using S = Shape<Spec, Config>;
  using Attn = AttnOperand<Spec, Config>;
  using Hidden = HiddenOperand<Spec, Config>;
  using Own = RowPair<Spec, Config, Config::kBlockM>;
  using Other = RowPair<Spec, Config, Config::kBlockN>;
  using Load = Loader<Spec, Config>;
  using Scores = typename S::Scores;
  // Rows that pass by have factors of their own.
  static constexpr bool kWeighted = !Role::kRows && Spec::Factors::kOfRows;

  __device__ __forceinline__ u32 own_tile() const { return shared_; }
  __device__ __forceinline__ u32 stage_tile(int stage) const {
    return shared_ + static_cast<u32>(sizeof(Own)) + stage * static_cast<u32>(sizeof(Other));
  }

  // `row` counts from the sequence's first. `kOfQ`: the tensor has the rows of q, else those of k.
  template <bool kOfQ>
  __device__ __forceinline__ const char* address(const TensorRef& tensor, int row) const {
    const i64 start = kOfQ ? sequence_.query_start : sequence_.start;
    return static_cast<const char*>(tensor.data) +
           ((start + row) * tensor.row_stride + head_ * tensor.head_stride) * S::kElementBytes;
  }

  template <int kRows, bool kBoth, bool kOfQ>
  __device__ __forceinline__ void load(const TensorRef& attn, const TensorRef& hidden, int row, u32 tile) const {
    Load::template load<typename Attn::QkTile, kRows, Attn::kQkBytes>(
        tile, address<kOfQ>(attn, row), attn.row_stride * S::kElementBytes, sequence_.rows - row);
    if constexpr (kBoth) {
      Load::template load<typename Hidden::QkTile, kRows, Hidden::kQkBytes>(
          tile + RowPair<Spec, Config, kRows>::kHiddenOffset, address<kOfQ>(hidden, row),
          hidden.row_stride * S::kElementBytes, sequence_.rows - row);
    }
  }

  template <int kRows, bool kBoth>
  __device__ __forceinline__ void round(u32 tile) const {
    Load::template round<typename Attn::QkTile, kRows, Attn::kQkBytes>(tile);
    if constexpr (kBoth) {
      Load::template round<typename Hidden::QkTile, kRows, Hidden::kQkBytes>(
          tile + RowPair<Spec, Config, kRows>::kHiddenOffset);
    }
  }

  template <int kRows>
  __device__ __forceinline__ void zero_padding(u32 tile) const {
    Load::template zero_padding<typename Attn::QkTile, kRows, Attn::kQkBytes>(tile);
    Load::template zero_padding<typename Hidden::QkTile, kRows, Hidden::kQkBytes>(
        tile + RowPair<Spec, Config, kRows>::kHiddenOffset);
  }

  __device__ __forceinline__ void prepare() {
    if constexpr (Role::kAttnGradient) clear_fragments(attn_sums_);
    if constexpr (Role::kHiddenGradient) clear_fragments(hidden_sums_);
    zero_padding<Config::kBlockM>(own_tile());
#pragma unroll
    for (int stage = 0; stage < Config::kStages; ++stage) zero_padding<Config::kBlockN>(stage_tile(stage));
    load<Config::kBlockM, Role::kAttnGradient, Role::kRows>(Role::own_attn(params_), Role::own_hidden(params_), own0_,
                                                            own_tile());
    cp_async_commit_group();
  }

  __device__ __forceinline__ void multiply_chunk(int stage, int chunk, int other0, bool full) {
    const u32 x = stage_tile(stage) + chunk * Config::kChunkColumns * Attn::QkTile::kRowBytes;
    const u32 y = stage_tile(stage) + Other::kHiddenOffset + chunk * Config::kChunkColumns * Hidden::QkTile::kRowBytes;
    Scores scores, gradients;
    multiply_scores(x, other0, scores);
    if constexpr (Role::kAttnGradient) hidden_.multiply_scores(y, gradients);
#ifdef kDropout
    u32 kept[S::kRowTiles][S::kScoreTiles / 2];
    draw(other0, kept);
    if constexpr (Role::kAttnGradient) drop(kept, gradients);
#endif
    if (full) {
      activate<false>(scores, gradients, other0);
    } else {
      activate<true>(scores, gradients, other0);
    }
#ifdef kDropout
    if constexpr (Role::kHiddenGradient) drop(kept, scores);
#endif
    if constexpr (Role::kHiddenGradient) hidden_.multiply_outputs(y, scores, hidden_sums_);
    if constexpr (Role::kAttnGradient) attn_.multiply_outputs(x, gradients, attn_sums_);
  }

#ifdef kDropout
  // Pairs that are kept of each 16 columns (or rows) of a chunk.
  __device__ __forceinline__ void draw(int other0, u32 (&kept)[S::kRowTiles][S::kScoreTiles / 2]) const {
    const Dropout<Params> dropout(params_, sequence_.start, head_);
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < S::kScoreTiles / 2; ++j)
        kept[i][j] = kept_of_square<!Role::kRows, Products<Attn>>(dropout, thread_own() + 16 * i, other0 + 16 * j);
    }
  }

  static __device__ __forceinline__ void drop(const u32 (&kept)[S::kRowTiles][S::kScoreTiles / 2], Scores& numbers) {
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < S::kScoreTiles / 2; ++j) drop_square(kept[i][j], numbers[i][2 * j], numbers[i][2 * j + 1]);
    }
  }

#endif
  // S / alpha.
  __device__ __forceinline__ void multiply_scores(u32 x, int other0, Scores& scores) const {
    if constexpr (Spec::Bias::kHeads > 0) {
      const HeadBias<Spec, Params> bias(params_, sequence_index_, head_, sequence_.rows);
      if constexpr (Role::kRows) {
        begin_rows_with<Spec, Attn>(bias, thread_own(), other0, scores);
      } else {
        begin_columns_with<Attn>(bias, thread_own(), other0, scores);
      }
      attn_.add_scores(x, scores);
    } else {
      attn_.multiply_scores(x, scores);
    }
  }

  // First of this thread's rows (or columns) within the sequence.
  __device__ __forceinline__ int thread_own() const { return warp_own0_ + static_cast<int>(threadIdx.x) % 32 / 4; }

  __device__ __forceinline__ float factor_of_row(int row) const {
    return RowFactors<Spec, Params>(params_, sequence_.query_start, sequence_.rows).of(row);
  }

#ifdef kSoftmaxScore
  template <bool kMasked>
  __device__ __forceinline__ void activate_softmax(Scores& scores, Scores& gradients, int other0) const {
    const int own = thread_own();
    const SoftmaxRows<Spec, Params> rows(params_, sequence_.query_start, sequence_.rows, head_);
    for_each_score<S>([&](int i, int j, int e) {
      const int mine = own + 16 * i + 8 * (e / 2), other = other0 + 8 * j + Products<Attn>::score_column(e % 2);
      bool valid = true;
      if constexpr (kMasked) {
        valid = other < sequence_.rows;
        if constexpr (!Spec::kMaskTrivial) valid = valid && Role::View::valid(mine, other, sequence_);
      }
      const auto at = [=] { return Role::View::pair(mine, other, sequence_, head_); };
      float weight, gradient = 0.0f;
      if constexpr (Role::kAttnGradient) gradient = gradients[i][j][e];
      softmax_gradient<Config>(scores[i][j][e], rows.of(Role::kRows ? mine : other), at, params_, weight, gradient);
      if constexpr (Role::kAttnGradient) gradients[i][j][e] = valid ? gradient : 0.0f;
      scores[i][j][e] = valid ? weight : 0.0f;
    });
  }

#elifdef kNumSoftmaxHeads
  template <bool kMasked>
  __device__ __forceinline__ void activate_softmax(Scores& scores, Scores& gradients, int other0) const {
    const int own = thread_own();
    const SoftmaxRows<Spec, Params> rows(params_, sequence_.query_start, sequence_.rows, head_);
    for_each_score<S>([&](int i, int j, int e) {
      const int mine = own + 16 * i + 8 * (e / 2), other = other0 + 8 * j + Products<Attn>::score_column(e % 2);
      bool valid = true;
      if constexpr (kMasked) {
        valid = other < sequence_.rows;
        if constexpr (!Spec::kMaskTrivial) valid = valid && Role::View::valid(mine, other, sequence_);
      }
      float weight, gradient = 0.0f;
      if constexpr (Role::kAttnGradient) gradient = gradients[i][j][e];
      softmax_gradient<Config>(scores[i][j][e], rows.of(Role::kRows ? mine : other), params_, weight, gradient);
      if constexpr (Role::kAttnGradient) gradients[i][j][e] = valid ? gradient : 0.0f;
      scores[i][j][e] = valid ? weight : 0.0f;
    });
  }

#endif
  // S to P and dP to dS, of columns with the factor of the row. Invalid pairs are replaced, not multiplied by zero:
  // theirs may be anything.
  template <bool kMasked>
  __device__ __forceinline__ void activate(Scores& scores, Scores& gradients, int other0) const {
#ifdef kNumSoftmaxHeads
    if (is_softmax_head<Spec>(head_)) return activate_softmax<kMasked>(scores, gradients, other0);
#endif
    const int own = thread_own();
    for_each_score<S>([&](int i, int j, int e) {
      bool valid = true;
      const int other = other0 + 8 * j + Products<Attn>::score_column(e % 2);
      const auto at = [=] { return Role::View::pair(own + 16 * i + 8 * (e / 2), other, sequence_, head_); };
      if constexpr (kMasked) {
        valid = other < sequence_.rows;
        if constexpr (!Spec::kMaskTrivial) {
          valid = valid && Role::View::valid(own + 16 * i + 8 * (e / 2), other, sequence_);
        }
      }
      if constexpr (Role::kAttnGradient) {
        float y, dy;
        score_grad(scores[i][j][e], at, params_, y, dy);
        if constexpr (kWeighted) {
          const float factor = factor_of_row(other);
          y *= factor;
          dy *= factor;
        }
        gradients[i][j][e] = valid ? gradients[i][j][e] * dy : 0.0f;
        scores[i][j][e] = valid ? y : 0.0f;
      } else {
        float y = score(scores[i][j][e], at, params_);
        if constexpr (kWeighted) y *= factor_of_row(other);
        scores[i][j][e] = valid ? y : 0.0f;
      }
    });
  }

  __device__ __forceinline__ auto factors() const {
    if constexpr (Role::kRows) {
      return row_factors<Spec>(params_, sequence_.query_start, sequence_.rows);
    } else {
      return common_factor<Spec>(params_);
    }
  }

  template <class Shape_>
  __device__ __forceinline__ void store(const TensorRef& tensor, const typename Shape_::Outputs& sums) const {
#ifdef kDropoutSoftmax
    if (is_softmax_head<Spec>(head_)) {
      store_outputs<Spec, Config, Shape_>(const_cast<char*>(address<Role::kRows>(tensor, 0)),
                                          tensor.row_stride * S::kElementBytes, warp_own0_, sequence_.rows, sums,
                                          kept_factor(params_));
      return;
    }
#elifdef kNumSoftmaxHeads
    if (is_softmax_head<Spec>(head_)) {
      store_outputs<Spec, Config, Shape_>(const_cast<char*>(address<Role::kRows>(tensor, 0)),
                                          tensor.row_stride * S::kElementBytes, warp_own0_, sequence_.rows, sums, 1.0f);
      return;
    }
#endif
    store_outputs<Spec, Config, Shape_>(const_cast<char*>(address<Role::kRows>(tensor, 0)),
                                        tensor.row_stride * S::kElementBytes, warp_own0_, sequence_.rows, sums,
                                        factors());
  }

  const Params& params_;
  const u32 shared_;
  const Sequence sequence_;
  const int sequence_index_;  // in the batch
  const int head_;
  const int own0_;       // the tile's first row (or column) within the sequence
  const int warp_own0_;  // the warp's
  Products<Attn> attn_;
  Products<Hidden> hidden_;
  typename Attn::Outputs attn_sums_;
  typename Hidden::Outputs hidden_sums_;
};

}  // namespace sm80
