// Attention backward: the gradients of the bias and of the factors of rows, by kernels that follow the one of the other
// gradients, whatever template that is of.
//
// They compute S and dP once more, by mma.sync in tiles of 64 rows and 64 columns, and add up in registers, in the
// order of heads and columns: no atomic additions, so that every run gives the same bits. fp32 data is multiplied as
// the instance's `precision` says. Formulas: docs/ops-attention.md.
#pragma once
#include "attention/operands/gradients/tiles.cuh"
#include "attention/pair.cuh"
#include "attention/sequence.cuh"
#include "attention/sm80/store.cuh"
#include "attention/softmax.cuh"  // where kNumSoftmaxHeads
#include "common/fragment_store.cuh"
#include "common/regions.cuh"

namespace operand_gradients {

// Where an element of this thread's fragment lies: element e of fragment j.
template <class Spec>
struct Fragment {
  int row, column;  // of the first element

  __device__ __forceinline__ Fragment(int row0, int column0)
      : row(row0 + static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4), column(column0) {}

  __device__ __forceinline__ int row_of(int e) const { return row + 8 * (e / 2); }
  __device__ __forceinline__ int column_of(int j, int e) const {
    return column + 8 * j + Products<Spec>::score_column(e % 2);
  }

  __device__ __forceinline__ Pair pair(int j, int e, const Sequence& sequence, int head) const {
    const int further = row_of(e) - row - (column_of(j, e) - column_of(0, 0));
    return {row_of(e), column_of(j, e), sequence.rows, sequence.targets, head, sequence.start, further};
  }

#ifdef kDropout
  // Bit 4 * j + e: the pair is kept. With kTransposed, rows are columns, and columns rows.
  template <bool kTransposed = false, class Params>
  __device__ __forceinline__ u32 kept(const Params& params, const Sequence& sequence, int head) const {
    const Dropout<Params> dropout(params, sequence.start, head);
    u32 bits = 0;
#pragma unroll
    for (int j = 0; j < kFragments; j += 2)
      bits |= kept_of_square<kTransposed, Products<Spec>>(dropout, row, column + 8 * j) << 4 * j;
    return bits;
  }

#endif
  // Bit 4 * j + e: the pair is valid.
  __device__ __forceinline__ u32 valid(const Sequence& sequence, bool full) const {
    if (full) return ~0u;
    u32 bits = 0;
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        bool seen = row_of(e) < sequence.rows && column_of(j, e) < sequence.rows;
        if constexpr (!Spec::kMaskTrivial) {
          seen = seen && mask_valid(row_of(e), column_of(j, e), sequence.rows, sequence.targets);
        }
        bits |= (seen ? 1u : 0u) << (4 * j + e);
      }
    }
    return bits;
  }
};

#ifdef kSoftmaxScoreDropout
template <bool kTransposed, class Fragment, class Params>
__device__ __forceinline__ u32 kept_pairs(const Fragment& fragment, const Params& params, const Sequence& sequence,
                                          int head) {
  return fragment.template kept<kTransposed>(params, sequence, head);
}
template <class Params>
__device__ __forceinline__ float factor_of_kept(const Params& params) {
  return kept_factor(params);
}
#elifdef kSoftmaxScore
// Without dropout all pairs are kept.
template <bool kTransposed, class Fragment, class Params>
__device__ __forceinline__ u32 kept_pairs(const Fragment&, const Params&, const Sequence&, int) {
  return ~0u;
}
template <class Params>
__device__ __forceinline__ float factor_of_kept(const Params&) {
  return 1.0f;
}
#endif
#ifdef kSoftmaxScore
// What the pairs of a tile pass on to what their scores read: dP times the factor of the row, and in a head with
// softmax P times what dP is above the mean of the row's. With kTransposed, rows of the fragment are columns.
template <class Spec, class Config, class Params, bool kTransposed = false>
class PassedOn {
 public:
  __device__ __forceinline__ PassedOn(const Params& params, const Sequence& sequence, int head,
                                      const Fragment<Spec>& fragment)
      : params_(params),
        softmax_(is_softmax_head<Spec>(head)),
        kept_(kept_pairs<kTransposed>(fragment, params, sequence, head)),
        rows_(params, sequence.query_start, sequence.rows, head),
        factors_(row_factors<Spec>(params, sequence.query_start, sequence.rows)) {
    if (kTransposed || !softmax_) return;
    known_[0] = rows_.of(fragment.row_of(0));
    known_[1] = rows_.of(fragment.row_of(2));
  }

  // Bit 4 * j + e: element e of fragment j passes on something where it is valid. The score of another is anything.
  __device__ __forceinline__ u32 counting() const { return softmax_ ? ~0u : kept_; }

  // Takes the product and dP of element e of fragment j, whose row is `row` and whose pair is that of `at`.
  template <class At>
  __device__ __forceinline__ float of(int j, int e, float product, float gradient, int row, const At& at) const {
    if (!softmax_) return gradient * factor_of(factors_, row);
    const RowStatistics known = kTransposed ? rows_.of(row) : known_[e / 2];
    const float weight = softmax_weight<Config>(score(product, at, params_), known, params_);
    return weight * ((is_kept(j, e) ? gradient : 0.0f) - known.mean) * factor_of_kept(params_);
  }

 private:
  __device__ __forceinline__ bool is_kept(int j, int e) const { return kept_ >> (4 * j + e) & 1; }

  const Params& params_;
  const bool softmax_;
  const u32 kept_;
  const SoftmaxRows<Spec, Params> rows_;
  const decltype(row_factors<Spec>(Params(), 0, 0)) factors_;
  RowStatistics known_[2];  // of the thread's rows, unless these are columns
};

#endif
// Whether some pairs of a tile are valid, and whether all are.
template <class Spec>
__device__ __forceinline__ void classify(const Sequence& sequence, int row0, int column0, bool& full, bool& visible) {
  const int rows = sequence.rows;
  full = visible = row0 < rows && column0 < rows;
  if (!visible) return;
  if constexpr (!Spec::kMaskTrivial) {
    mask_tile(row0, min(row0 + kTileSize, rows) - 1, column0, min(column0 + kTileSize, rows) - 1, rows,
              sequence.targets, full, visible);
  }
  full = full && row0 + kTileSize <= rows && column0 + kTileSize <= rows;
}

// Stores this thread's elements of a tile of the bias's gradient, of which `first` is element 0 of the head's square.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void store_tile(const Params& params, i64 first, int row0, int column0,
                                           const float (&sums)[kFragments][4]) {
  using Gradient = typename Spec::Bias::Gradient;
  const Fragment<Spec> fragment(row0, column0);
  const int size = max_sequence_rows<Config>(params), t = static_cast<int>(threadIdx.x) % 4;
  if constexpr (!Spec::kDtypeFp32) {
    u32 words[2 * kFragments];
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        words[2 * j + half] = pack_pair<Spec::kDtypeBf16>(sums[j][2 * half], sums[j][2 * half + 1]);
      }
    }
    const bool full = Spec::kAlignment >= 16 && column0 + kTileSize <= size;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = fragment.row + 8 * half;
      u16* out = Gradient::data(params) + (first + row * Gradient::row_stride(params) + column0);
      if (full) {
        store_fragment_row<kTileSize>(out, words, half, row < size);
      } else if (row < size) {
#pragma unroll
        for (int j = 0; j < kFragments; ++j) {
          const u32 word = words[2 * j + half];
          const int column = 8 * j + 2 * t;
          if (column0 + column < size) out[column] = static_cast<u16>(word);
          if (column0 + column + 1 < size) out[column + 1] = static_cast<u16>(word >> 16);
        }
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = fragment.row_of(e), column = fragment.column_of(j, e);
        if (row < size && column < size) {
          Gradient::data(params)[first + row * Gradient::row_stride(params) + column] = sums[j][e];
        }
      }
    }
  }
}

// The bias's gradient of a tile: the gradients of the heads that share a head of the bias, added up.
template <class Spec, class Config, class Params>
class BiasSums {
 public:
  __device__ __forceinline__ BiasSums(const Params& params, const Sequence& sequence, int bias_head, int row0,
                                      int column0, bool full, bool visible)
      : params_(params),
        sequence_(sequence),
        fragment_(row0, column0),
        bias_head_(bias_head),
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
    kv_tile = {bias_head_ * kHeads + heads_++, fragment_.column};
    return true;
  }
#ifdef kDropout
  // Comes before add(), and best before S and dP: registers are free then.
  __device__ __forceinline__ void draw_dropout(const KvTile& kv_tile) {
    kept_ = fragment_.kept(params_, sequence_, kv_tile.head);
  }
#endif
#ifdef kSoftmaxScoreDropout
  __device__ __forceinline__ u32 kept() const { return kept_; }
#elifdef kSoftmaxScore
  __device__ __forceinline__ u32 kept() const { return ~0u; }
#endif
#ifdef kSoftmaxScore
  __device__ __forceinline__ void add_softmax(const KvTile& kv_tile, const Scores& scores, const Scores& gradients) {
    const SoftmaxRows<Spec, Params> rows(params_, sequence_.query_start, sequence_.rows, kv_tile.head);
    const float factor = factor_of_kept(params_);
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto at = [=] { return fragment_.pair(j, e, sequence_, kv_tile.head); };
        float weight, gradient = kept() >> (4 * j + e) & 1 ? gradients[0][j][e] : 0.0f;
        softmax_gradient<Config>(scores[0][j][e], rows.of(fragment_.row_of(e)), at, params_, weight, gradient);
        sums_[j][e] += valid_ >> (4 * j + e) & 1 ? gradient * factor : 0.0f;
      }
    }
  }
#elifdef kDropoutSoftmax
  __device__ __forceinline__ void add_softmax(const KvTile& kv_tile, const Scores& scores, const Scores& gradients) {
    const SoftmaxRows<Spec, Params> rows(params_, sequence_.query_start, sequence_.rows, kv_tile.head);
    const float factor = kept_factor(params_);
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float weight, gradient = kept_ >> (4 * j + e) & 1 ? gradients[0][j][e] : 0.0f;
        softmax_gradient<Config>(scores[0][j][e], rows.of(fragment_.row_of(e)), params_, weight, gradient);
        sums_[j][e] += valid_ >> (4 * j + e) & 1 ? gradient * factor : 0.0f;
      }
    }
  }
#elifdef kNumSoftmaxHeads
  __device__ __forceinline__ void add_softmax(const KvTile& kv_tile, const Scores& scores, const Scores& gradients) {
    const SoftmaxRows<Spec, Params> rows(params_, sequence_.query_start, sequence_.rows, kv_tile.head);
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float weight, gradient = gradients[0][j][e];
        softmax_gradient<Config>(scores[0][j][e], rows.of(fragment_.row_of(e)), params_, weight, gradient);
        sums_[j][e] += valid_ >> (4 * j + e) & 1 ? gradient : 0.0f;
      }
    }
  }
#endif
  __device__ __forceinline__ void add(const KvTile& kv_tile, const Scores& scores, const Scores& gradients) {
#ifdef kNumSoftmaxHeads
    if (is_softmax_head<Spec>(kv_tile.head)) return add_softmax(kv_tile, scores, gradients);
    const auto factors = row_factors<Spec>(params_, sequence_.query_start, sequence_.rows);
#endif
#ifdef kDropout
    const u32 added = valid_ & kept_;
#endif
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto at = [=] { return fragment_.pair(j, e, sequence_, kv_tile.head); };
        float y, dy;
        score_grad(scores[0][j][e], at, params_, y, dy);
#ifdef kNumSoftmaxHeads
        dy *= factor_of(factors, fragment_.row_of(e));
#endif
#ifdef kDropout
        sums_[j][e] += added >> (4 * j + e) & 1 ? gradients[0][j][e] * dy : 0.0f;
#else
        sums_[j][e] += valid_ >> (4 * j + e) & 1 ? gradients[0][j][e] * dy : 0.0f;
#endif
      }
    }
  }

  // `start`: row of q that the sequence's first has. The derivative of the score has the factor alpha.
  __device__ __forceinline__ void finish(i64 start, int rows) {
#ifdef kNumSoftmaxHeads
    // Heads differ in their factors, which are in what was added.
#else
    const auto factors = row_factors<Spec>(params_, start, rows);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float factor = factor_of(factors, fragment_.row + 8 * half);
#pragma unroll
      for (int j = 0; j < kFragments; ++j) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          sums_[j][e] = valid_ >> (4 * j + e) & 1 ? sums_[j][e] * factor : 0.0f;
        }
      }
    }
#endif
  }

  // `first`: element 0 of the head's square in what the gradient is added to. The gradient may lie there: what this
  // thread reads is stored by its warp, behind the additions.
  __device__ __forceinline__ void add_before(i64 first) {
    using Before = typename Spec::Bias::Before;
    const int size = max_sequence_rows<Config>(params_);
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = fragment_.row_of(e), column = fragment_.column_of(j, e);
        if (row >= size || column >= size) continue;
        const auto before = Before::data(params_)[first + row * Before::row_stride(params_) + column];
        if constexpr (Spec::kDtypeFp32) {
          sums_[j][e] += before;
        } else {
          sums_[j][e] += unpack_low<Spec::kDtypeBf16>(before);
        }
      }
    }
  }

  __device__ __forceinline__ const float (&sums() const)[kFragments][4] { return sums_; }

 private:
  static constexpr int kHeads = Spec::kHeads / Spec::Bias::kHeads;

  const Params& params_;
  const Sequence sequence_;
  const Fragment<Spec> fragment_;
  const int bias_head_;
  const u32 valid_;
#ifdef kDropout
  u32 kept_;  // of a head
#endif
  int heads_ = 0;  // so many are done
  float sums_[kFragments][4];
};

#ifdef kDropout
// The same for TilePairs::run().
template <class Sums>
struct DrawingSums {
  Sums& sums;

  __device__ __forceinline__ bool next(KvTile& kv_tile) { return sums.next(kv_tile); }
  __device__ __forceinline__ void add(const KvTile& kv_tile, const Scores& scores, const Scores& gradients) {
    sums.draw_dropout(kv_tile);
    sums.add(kv_tile, scores, gradients);
  }
};

#endif
// The gradient of the factors of a tile of rows: sums over all heads and over the columns that the rows see.
template <class Spec, class Config, class Params>
class RowSums {
 public:
  __device__ __forceinline__ RowSums(const Params& params, const Sequence& sequence, int row0)
      : params_(params), sequence_(sequence), row0_(row0) {
    mask_columns(row0, min(row0 + kTileSize, sequence.rows) - 1, sequence.rows, sequence.targets, begin_, end_);
    begin_ = max(begin_, 0);
#ifdef kDropout
    begin_ &= ~15;  // what is drawn is of 16 columns
#else
    if constexpr (Config::kEvenTiles) begin_ &= ~1;
#endif
    end_ = min(end_, sequence.rows);
    column_ = begin_;
  }

  // Called by TilePairs::run().
  __device__ __forceinline__ bool next(KvTile& kv_tile) {
    while (head_ < Spec::kHeads) {
      if (column_ >= end_) {
        ++head_;
        column_ = begin_;
        if (begin_ >= end_) return false;
        continue;
      }
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
    const Fragment<Spec> fragment(row0_, kv_tile.column0);
#ifdef kDropout
    const u32 valid = fragment.valid(sequence_, full) & fragment.kept(params_, sequence_, kv_tile.head);
#else
    const u32 valid = fragment.valid(sequence_, full);
#endif
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const auto at = [=] { return fragment.pair(j, e, sequence_, kv_tile.head); };
        const float y = score(scores[0][j][e], at, params_);
        sums_[e / 2] += valid >> (4 * j + e) & 1 ? y * gradients[0][j][e] : 0.0f;
      }
    }
  }

  // To sums[row of the tensor], with what `before` has for the row, where there is such a tensor.
  __device__ __forceinline__ void store(float* sums, const float* before = nullptr) {
    const Fragment<Spec> fragment(row0_, 0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = sums_[half];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
#ifdef kDropout
      sum *= kept_factor(params_);
#endif
      const int row = fragment.row + 8 * half;
      if (threadIdx.x % 4 != 0 || row >= sequence_.rows) continue;
      const i64 at = sequence_.query_start + row;
      sums[at] = before == nullptr ? sum : before[at] + sum;
    }
  }

 private:
  const Params& params_;
  const Sequence sequence_;
  const int row0_;
  int begin_, end_;  // of the columns that the rows see
#ifdef kNumSoftmaxHeads
  int head_ = Spec::kNumSoftmaxHeads, column_;  // softmax has no factors
#else
  int head_ = 0, column_;
#endif
  float sums_[2] = {0.0f, 0.0f};  // of this thread's two rows
};

// Writes zeroes to the rows of a tile that q does not have. The tile is of a square of `size` rows and columns, whose
// element 0 is `first`.
template <class T>
__device__ __forceinline__ void clear_rows_without_query(const Sequence& sequence, T* first, i64 row_stride, int size,
                                                         int row0, int column0) {
  const int rows = min(min(first_query_row(sequence), size) - row0, kTileSize);
  const int columns = min(size - column0, kTileSize);
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += kThreads)
    first[(row0 + i / columns) * row_stride + column0 + i % columns] = T(0);
}

}  // namespace operand_gradients

// One CTA per (sequence, bias head, tile). Writes all of the gradient, zeroes where there is nothing to add up.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void bias_gradient(const Params& params) {
  using namespace operand_gradients;
  using Gradient = typename Spec::Bias::Gradient;
  __shared__ __align__(128) unsigned char static_bytes[kStaticBytes];
  const u32 tiles = ceil_div(max_sequence_rows<Config>(params), kTileSize);
  const u32 column_tile = blockIdx.x % tiles, row_tile = blockIdx.x / tiles % tiles;
  const u32 pair = blockIdx.x / tiles / tiles;
  const int bias_head = static_cast<int>(pair % Spec::Bias::kHeads),
            index = static_cast<int>(pair / Spec::Bias::kHeads);
  const int first_row = static_cast<int>(row_tile) * kTileSize, column0 = static_cast<int>(column_tile) * kTileSize;
  const Sequence sequence = sequence_of<Spec, Config>(params, index);
  const int row0 = first_query_row(sequence) + first_row;
  const i64 first = index * Gradient::batch_stride(params) + bias_head * Gradient::head_stride(params);
  if constexpr (Config::kDelta)
    clear_rows_without_query(sequence, Gradient::data(params) + first, Gradient::row_stride(params),
                             max_sequence_rows<Config>(params), first_row, column0);
  bool full, visible;
  classify<Spec>(sequence, row0, column0, full, visible);
  BiasSums<Spec, Config, Params> sums(params, sequence, bias_head, row0, column0, full, visible);
  if (visible) {
#ifdef kDropout
    DrawingSums<BiasSums<Spec, Config, Params>> drawing{sums};
    TilePairs<Spec, Params>(params, sequence, index, shared_address(static_bytes), row0).run(drawing);
#else
    TilePairs<Spec, Params>(params, sequence, index, shared_address(static_bytes), row0).run(sums);
#endif
    sums.finish(sequence.query_start, sequence.rows);
  }
  if constexpr (Config::kAddsGradients) {
    using Before = typename Spec::Bias::Before;
    if (!visible && Gradient::data(params) == Before::data(params)) return;  // nothing is added
    sums.add_before(index * Before::batch_stride(params) + bias_head * Before::head_stride(params));
  }
  store_tile<Spec, Config>(params, first, row0, column0, sums.sums());
}

// Memory for the sums of rows of q: the factors' gradient, or `row_sums` where the rows have one factor in common.
template <class Spec, class Params>
__device__ __forceinline__ float* sums_of_rows(const Params& params) {
  if constexpr (Spec::Factors::kOfRows) {
    return Spec::Factors::Gradient::data(params);
  } else {
    return params.row_sums;
  }
}

// One CTA per (sequence, tile of rows). Writes the sums of the rows of sequences that q has.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void scale_gradient(const Params& params) {
  using namespace operand_gradients;
  __shared__ __align__(128) unsigned char static_bytes[kStaticBytes];
  using Factors = typename Spec::Factors;
  const u32 tiles = ceil_div(max_sequence_rows<Config>(params), kTileSize);
  const int index = static_cast<int>(blockIdx.x / tiles);
  const Sequence sequence = sequence_of<Spec, Config>(params, index);
  const int row0 = first_query_row(sequence) + static_cast<int>(blockIdx.x % tiles) * kTileSize;
  if constexpr (Config::kDelta) {
    if (blockIdx.x % tiles == 0) clear_rows_before<1>(sequence, sums_of_rows<Spec>(params), 1);
  }
  if (row0 >= sequence.rows) return;
  RowSums<Spec, Config, Params> sums(params, sequence, row0);
  TilePairs<Spec, Params>(params, sequence, index, shared_address(static_bytes), row0).run(sums);
  if constexpr (Factors::kOfRows && Config::kAddsGradients) {
    sums.store(sums_of_rows<Spec>(params), Factors::Before::data(params));
  } else {
    sums.store(sums_of_rows<Spec>(params));
  }
}

// One CTA, behind scale_gradient: the gradient of the one factor of all rows.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void add_row_sums(const Params& params) {
  using namespace operand_gradients;
  __shared__ __align__(128) unsigned char static_bytes[kSumThreads * sizeof(float)];
  i64 end = min(static_cast<i64>(params.seq_offsets[params.batch]), params.total_rows);
  i64 begin = min(max(static_cast<i64>(params.seq_offsets[0]), 0ll), max(end, 0ll));
  if constexpr (Config::kDelta) {
    const Sequence first = sequence_of<Spec, Config>(params, 0);
    const Sequence last = sequence_of<Spec, Config>(params, static_cast<int>(params.batch) - 1);
    begin = first.query_start + first.query_begin;
    end = last.query_start + last.rows;
  }
  float sum = 0.0f;
  for (i64 row = begin + threadIdx.x; row < end; row += kSumThreads) sum += params.row_sums[row];
  auto* const partials = reinterpret_cast<float*>(static_bytes);
  partials[threadIdx.x] = sum;
#pragma unroll 1
  for (u32 half = kSumThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partials[threadIdx.x] += partials[threadIdx.x + half];
  }
  if (threadIdx.x > 0) return;
  if constexpr (Config::kAddsGradients) partials[0] += Spec::Factors::Before::data(params)[0];
  Spec::Factors::Gradient::data(params)[0] = partials[0];
}
