// Attention forward for Ampere and Ada (sm_80 and later): cp.async pipeline, mma.sync, one row tile a CTA.
//
// A CTA loads its rows of q once and walks over KV tiles; each warp owns 16 or 32 rows of the tile. A
// KV tile is worked off in chunks, S = q k^T, P = score(S) under the mask, O += P v, all in registers: without softmax
// chunks are independent, and the size of a KV tile in shared memory does not decide how many registers are needed.
// Heads with softmax keep the largest S and the sum of P of a row from chunk to chunk. bf16, fp16, fp32 by tf32
// products, fp32 by fused multiply-adds. Of hstu_attention and delta_hstu_attention; formulas: docs/ops-attention.md. Generated
// around it: see docs/generated-source.md.
#pragma once
#include "attention/dropout.cuh"  // where kDropout
#include "attention/sequence.cuh"
#include "attention/sm80/bias.cuh"
#include "attention/sm80/cta_place.cuh"
#include "attention/sm80/load.cuh"
#include "attention/sm80/moving_tiles.cuh"
#include "attention/sm80/products.cuh"
#include "attention/sm80/store.cuh"
#include "attention/softmax.cuh"  // where kNumSoftmaxHeads
#include "common/math.cuh"
#include "common/regions.cuh"

namespace sm80 {

template <class Spec, class Config, class Params>
class Worker {
 public:
  using S = Shape<Spec, Config>;

  __device__ __forceinline__ Worker(const Params& params, u32 shared, const Sequence& sequence, const CtaPlace& place,
                                    int row0)
      : params_(params),
        shared_(shared),
        sequence_(sequence),
        sequence_index_(place.sequence),
        head_(place.head),
        row0_(row0) {
    warp_row0_ = static_cast<int>(threadIdx.x) / 32 * S::kWarpRows;
  }

  __device__ __forceinline__ void run() {
    prepare();
    walk_moving_tiles<Config::kStages>(MovingTileCursor<Spec, Config, RowsView>(row0_, sequence_), *this);
    char* out = reinterpret_cast<char*>(params_.out) +
                sequence_.query_start * params_.out_row_stride * S::kElementBytes +
                head_ * params_.out_head_stride * S::kElementBytes;
#ifdef kDropoutSoftmax
    if (is_softmax_head<Spec>(head_)) {
      normalize_outputs();
      store_outputs<Spec, Config, S>(out, params_.out_row_stride * S::kElementBytes, row0_ + warp_row0_, sequence_.rows,
                                     outputs_, kept_factor(params_));
      return;
    }
#elifdef kNumSoftmaxHeads
    if (is_softmax_head<Spec>(head_)) {
      normalize_outputs();
      store_outputs<Spec, Config, S>(out, params_.out_row_stride * S::kElementBytes, row0_ + warp_row0_, sequence_.rows,
                                     outputs_, 1.0f);
      return;
    }
#endif
    store_outputs<Spec, Config, S>(out, params_.out_row_stride * S::kElementBytes, row0_ + warp_row0_, sequence_.rows,
                                   outputs_, row_factors<Spec>(params_, sequence_.query_start, sequence_.rows));
  }

  // Called by walk_moving_tiles().
  __device__ __forceinline__ void load_moving(const MovingTile& tile, int stage) {
    const int rows = sequence_.rows - tile.first;
    Load::template load<typename S::QkTile, Config::kBlockN, S::kQkBytes>(
        k_tile(stage), address(params_.k, params_.k_row_stride, params_.k_head_stride, sequence_.start + tile.first),
        params_.k_row_stride * S::kElementBytes, rows);
    Load::template load<typename S::VTile, Config::kBlockN, S::kVBytes>(
        v_tile(stage), address(params_.v, params_.v_row_stride, params_.v_head_stride, sequence_.start + tile.first),
        params_.v_row_stride * S::kElementBytes, rows);
  }

  __device__ __forceinline__ void round_own() {
    Load::template round<typename S::QkTile, Config::kBlockM, S::kQkBytes>(q_tile());
  }

  __device__ __forceinline__ void own_arrived() { products_.set_queries(q_tile() + warp_row0_ * S::QkTile::kRowBytes); }

  __device__ __forceinline__ void round_moving(int stage) {
    Load::template round<typename S::QkTile, Config::kBlockN, S::kQkBytes>(k_tile(stage));
    Load::template round<typename S::VTile, Config::kBlockN, S::kVBytes>(v_tile(stage));
  }

  // A KV tile that is not valid throughout is looked at again, chunk by chunk and for this warp's rows alone.
  __device__ __forceinline__ void multiply(const MovingTile& tile, int stage) {
    const int row0 = row0_ + warp_row0_;
    if (row0 >= sequence_.rows) return;
    if (tile.full) {
#pragma unroll kUnrolledChunks
      for (int chunk = 0; chunk < S::kChunks; ++chunk) {
        Scores scores;
        multiply_scores(k_chunk(stage, chunk), tile.first + chunk * Config::kChunkColumns, scores);
        activate<false>(scores, tile.first + chunk * Config::kChunkColumns);
#ifdef kDropout
        drop_weights(scores, tile.first + chunk * Config::kChunkColumns);
#endif
        products_.multiply_outputs(v_chunk(stage, chunk), scores, outputs_);
      }
      return;
    }
    const int row1 = min(row0 + S::kWarpRows, sequence_.rows) - 1;
#pragma unroll 1
    for (int chunk = 0; chunk < S::kChunks; ++chunk) {
      const int column0 = tile.first + chunk * Config::kChunkColumns;
      if (column0 >= sequence_.rows) return;
      bool full = true, visible = true;
      if constexpr (!Spec::kMaskTrivial) {
        const int column1 = min(column0 + Config::kChunkColumns, sequence_.rows) - 1;
        mask_tile(row0, row1, column0, column1, sequence_.rows, sequence_.targets, full, visible);
        if (!visible) continue;
      }
      Scores scores;
      multiply_scores(k_chunk(stage, chunk), column0, scores);
      if (full && column0 + Config::kChunkColumns <= sequence_.rows) {
        activate<false>(scores, column0);
      } else {
        activate<true>(scores, column0);
      }
#ifdef kDropout
      drop_weights(scores, column0);
#endif
      products_.multiply_outputs(v_chunk(stage, chunk), scores, outputs_);
    }
  }

 private:
  using Load = Loader<Spec, Config>;
  using Scores = typename S::Scores;
  using Multiply = Products<S>;
  // One fragment of rows leaves room for the products of two chunks side by side.
  static constexpr int kUnrolledChunks = S::kRowTiles == 1 ? 2 : 1;

  __device__ __forceinline__ u32 q_tile() const { return shared_; }
  __device__ __forceinline__ u32 k_tile(int stage) const {
    return shared_ + Config::kBlockM * S::QkTile::kRowBytes +
           stage * Config::kBlockN * (S::QkTile::kRowBytes + S::VTile::kRowBytes);
  }
  __device__ __forceinline__ u32 v_tile(int stage) const {
    return k_tile(stage) + Config::kBlockN * S::QkTile::kRowBytes;
  }

  // The head's columns of a row.
  template <class Pointer>
  __device__ __forceinline__ const char* address(Pointer tensor, i64 row_stride, i64 head_stride, i64 row) const {
    return reinterpret_cast<const char*>(tensor) + (row * row_stride + head_ * head_stride) * S::kElementBytes;
  }

  __device__ __forceinline__ void prepare() {
    clear_fragments(outputs_);
    Load::template zero_padding<typename S::QkTile, Config::kBlockM, S::kQkBytes>(q_tile());
#pragma unroll
    for (int stage = 0; stage < Config::kStages; ++stage) {
      Load::template zero_padding<typename S::QkTile, Config::kBlockN, S::kQkBytes>(k_tile(stage));
    }
    Load::template load<typename S::QkTile, Config::kBlockM, S::kQkBytes>(
        q_tile(), address(params_.q, params_.q_row_stride, params_.q_head_stride, sequence_.query_start + row0_),
        params_.q_row_stride * S::kElementBytes, sequence_.rows - row0_);
    cp_async_commit_group();
  }

  __device__ __forceinline__ u32 k_chunk(int stage, int chunk) const {
    return k_tile(stage) + chunk * Config::kChunkColumns * S::QkTile::kRowBytes;
  }
  __device__ __forceinline__ u32 v_chunk(int stage, int chunk) const {
    return v_tile(stage) + chunk * Config::kChunkColumns * S::VTile::kRowBytes;
  }

  // S / alpha of a chunk of columns, `column0` and those behind it.
  __device__ __forceinline__ void multiply_scores(u32 k, int column0, Scores& scores) const {
    if constexpr (Spec::Bias::kHeads > 0) {
      const HeadBias<Spec, Params> bias(params_, sequence_index_, head_, sequence_.rows);
      begin_rows_with<Spec, S>(bias, thread_row(), column0, scores);
      products_.add_scores(k, scores);
    } else {
      products_.multiply_scores(k, scores);
    }
  }

  // First of this thread's rows within the sequence.
  __device__ __forceinline__ int thread_row() const {
    return row0_ + warp_row0_ + static_cast<int>(threadIdx.x) % 32 / 4;
  }

#ifdef kDropout
  __device__ __forceinline__ void drop_weights(Scores& scores, int column0) const {
    const Dropout<Params> dropout(params_, sequence_.start, head_);
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < S::kScoreTiles; j += 2)
        drop_square(kept_of_square<false, Multiply>(dropout, thread_row() + 16 * i, column0 + 8 * j), scores[i][j],
                    scores[i][j + 1]);
    }
  }

#endif
#ifdef kSoftmaxScore
  // The score of S as a power of two, minus infinity where a pair is not valid.
  template <bool kMasked>
  __device__ __forceinline__ void scale_scores(Scores& scores, int column0) const {
    const int first_row = thread_row();
    const float scale = softmax_scale(params_);
    for_each_score<S>([&](int i, int j, int e) {
      const int row = first_row + 16 * i + 8 * (e / 2), column = column0 + 8 * j + Multiply::score_column(e % 2);
      const auto at = [=] { return RowsView::pair(row, column, sequence_, head_); };
      float& x = scores[i][j][e];
      x = score(x, at, params_) * scale;
      if constexpr (kMasked) {
        bool valid = column < sequence_.rows;
        if constexpr (!Spec::kMaskTrivial) valid = valid && RowsView::valid(row, column, sequence_);
        x = valid ? x : negative_infinity();
      }
    });
  }

#elifdef kNumSoftmaxHeads
  // S as a power of two, minus infinity where a pair is not valid.
  template <bool kMasked>
  __device__ __forceinline__ void scale_scores(Scores& scores, int column0) const {
    const int row = thread_row();
    const float scale = softmax_scale(params_);
    for_each_score<S>([&](int i, int j, int e) {
      float& x = scores[i][j][e];
      x *= scale;
      if constexpr (kMasked) {
        const int column = column0 + 8 * j + Multiply::score_column(e % 2);
        bool valid = column < sequence_.rows;
        if constexpr (!Spec::kMaskTrivial) {
          valid = valid && RowsView::valid(row + 16 * i + 8 * (e / 2), column, sequence_);
        }
        x = valid ? x : negative_infinity();
      }
    });
  }

#endif
#ifdef kNumSoftmaxHeads
  // S of a chunk to weights, and what was summed up before to what that is relative to the largest S of now.
  __device__ __forceinline__ void weigh(Scores& scores) {
    float kept[S::kRowTiles][2];
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        kept[i][half] = softmax_[i][half].weigh([&](const auto& what) {
#pragma unroll
          for (int j = 0; j < S::kScoreTiles; ++j) {
            what(scores[i][j][2 * half]);
            what(scores[i][j][2 * half + 1]);
          }
        });
      }
    }
    scale_outputs(kept);
  }

  __device__ __forceinline__ void normalize_outputs() {
    float factors[S::kRowTiles][2];
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) factors[i][half] = softmax_[i][half].factor();
    }
    scale_outputs(factors);
  }

  __device__ __forceinline__ void scale_outputs(const float (&factors)[S::kRowTiles][2]) {
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < S::kOutputTiles; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) outputs_[i][j][e] *= factors[i][e / 2];
      }
    }
  }

#endif
  // Invalid pairs are replaced, not multiplied by zero: their score may be anything.
  template <bool kMasked>
#ifdef kNumSoftmaxHeads
  __device__ __forceinline__ void activate(Scores& scores, int column0) {
    if (is_softmax_head<Spec>(head_)) {
      scale_scores<kMasked>(scores, column0);
      weigh(scores);
      return;
    }
#else
  __device__ __forceinline__ void activate(Scores& scores, int column0) const {
#endif
    const int row = thread_row();
    // As for_each_score, through which the compiler orders instructions otherwise than in what was timed.
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < S::kScoreTiles; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const auto at = [=] {
            return RowsView::pair(row + 16 * i + 8 * (e / 2), column0 + 8 * j + Multiply::score_column(e % 2),
                                  sequence_, head_);
          };
          const float y = score(scores[i][j][e], at, params_);
          if constexpr (kMasked) {
            const int column = column0 + 8 * j + Multiply::score_column(e % 2);
            bool valid = column < sequence_.rows;
            if constexpr (!Spec::kMaskTrivial) {
              valid = valid && mask_valid(row + 16 * i + 8 * (e / 2), column, sequence_.rows, sequence_.targets);
            }
            scores[i][j][e] = valid ? y : 0.0f;
          } else {
            scores[i][j][e] = y;
          }
        }
      }
    }
  }

  const Params& params_;
  const u32 shared_;
  const Sequence sequence_;
  const int sequence_index_;  // in the batch
  const int head_;
  const int row0_;  // the tile's first row within the sequence
  int warp_row0_;   // the warp's first row within the tile
  Multiply products_;
  typename S::Outputs outputs_;
#ifdef kNumSoftmaxHeads
  OnlineSoftmax<Config> softmax_[S::kRowTiles][2];
#endif
};

}  // namespace sm80

// "grid": one CTA per (row tile, sequence, head), the last row tiles of all sequences first: under a causal mask they
// are the longest. CTAs past a sequence's end leave at once. "per_sequence": one CTA per (sequence, head), for batches
// of thousands of short sequences, where a CTA for each tile that there could be is mostly one that leaves.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace sm80;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  static_assert(sizeof(Shared<Spec, Config>) == Config::kSharedBytes,
                "the host side and the template disagree on shared memory");

  const CtaPlace place = cta_place<Spec, Config, 1>(params);
#ifdef kAttnFunc
  Sequence sequence = sequence_of<Spec, Config>(params, place.sequence);
  sequence.targets = intervals_of<Spec>(params, sequence, place.head);
#else
  const Sequence sequence = sequence_of<Spec, Config>(params, place.sequence);
#endif
  const auto run = [&](int row0) {
    Worker<Spec, Config, Params>(params, shared_address(shared_bytes), sequence, place, row0).run();
  };
  if constexpr (Config::kSchedulePerSequence) {
    for_each_tile<Config::kBlockM>(sequence.rows, run);
  } else {
    const int row_tile = ceil_div(params.max_query_rows, Config::kBlockM) - 1 - place.rest;
    if (row_tile * Config::kBlockM >= sequence.rows - sequence.query_begin) return;
    run(sequence.query_begin + row_tile * Config::kBlockM);
  }
}
