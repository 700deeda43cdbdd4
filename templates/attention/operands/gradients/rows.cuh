// Attention backward: the gradient of an operand with an element for each row, by a kernel of its own that follows the
// one of q, k and v.
//
// The element of row r is read by the pairs whose row is r, and by those whose column is r. A CTA has 64 rows of a
// sequence: it adds up over the columns that they see, and then, with S and dP transposed, over the rows that see them.
// No atomic additions, so that every run gives the same bits. `Slopes` is printed from the operand: the derivatives of
// the score with respect to the element of the pair's row and of its column, and where the sums go.
#pragma once
#include "attention/operands/gradients/kernels.cuh"
#include "attention/operands/gradients/store.cuh"

namespace operand_gradients {

// Sums over the pairs of a tile's rows, or with kColumns of its columns.
template <class Spec, class Config, class Params, class Slopes, bool kColumns>
class SlopeSums {
 public:
  __device__ __forceinline__ SlopeSums(const Params& params, const Sequence& sequence, int own0, int first_head,
                                       int end_head, float (&sums)[2])
      : params_(params), sequence_(sequence), own0_(own0), end_head_(end_head), head_(first_head), sums_(sums) {
    const int last = min(own0 + kTileSize, sequence.rows) - 1;
    if constexpr (kColumns) {
      mask_rows(own0, last, sequence.rows, sequence.targets, begin_, end_);
    } else {
      mask_columns(own0, last, sequence.rows, sequence.targets, begin_, end_);
    }
    begin_ = max(begin_, 0);
#ifdef kDropout
    begin_ &= ~15;  // what is drawn is of 16 columns, or rows
#else
    if constexpr (Config::kEvenTiles) begin_ &= ~1;
#endif
    if constexpr (Config::kDelta && kColumns) begin_ = max(begin_, first_query_row(sequence));
    end_ = min(end_, sequence.rows);
    other_ = begin_;
#ifdef kSoftmaxScore
    // All heads may read it.
#elifdef kNumSoftmaxHeads
    head_ = max(head_, Spec::kNumSoftmaxHeads);  // softmax reads nothing
#endif
  }

  // Called by TilePairs::run().
  __device__ __forceinline__ bool next(KvTile& tile) {
    if (begin_ >= end_) return false;
    while (head_ < end_head_) {
      if (other_ >= end_) {
        ++head_;
        other_ = begin_;
        continue;
      }
      tile = {head_, other_};
      other_ += kTileSize;
      bool full, visible;
      classify_tile(tile.column0, full, visible);
      if (visible) return true;
    }
    return false;
  }
  __device__ __forceinline__ void add(const KvTile& tile, const Scores& scores, const Scores& gradients) {
    const Fragment<Spec> fragment(own0_, tile.column0);
#ifdef kSoftmaxScore
    const PassedOn<Spec, Config, Params, kColumns> passed_on(params_, sequence_, tile.head, fragment);
#else
    const auto factors = row_factors<Spec>(params_, sequence_.query_start, sequence_.rows);
#endif
#ifdef kSoftmaxScore
    // It knows which pairs are kept.
#elifdef kDropout
    const u32 kept = fragment.template kept<kColumns>(params_, sequence_, tile.head);
#endif
#pragma unroll
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int own = fragment.row_of(e), other = fragment.column_of(j, e);
        const int row = kColumns ? other : own, column = kColumns ? own : other;
        bool valid = row < sequence_.rows && column < sequence_.rows;
        if constexpr (!Spec::kMaskTrivial) {
          valid = valid && mask_valid(row, column, sequence_.rows, sequence_.targets);
        }
#ifdef kSoftmaxScore
        valid = valid && (passed_on.counting() >> (4 * j + e) & 1);
#elifdef kDropout
        valid = valid && (kept >> (4 * j + e) & 1);
#endif
        const auto at = [=] {
          return Pair{row, column, sequence_.rows, sequence_.targets, tile.head, sequence_.start};
        };
        float slope;
        if constexpr (kColumns) {
          slope = Slopes::of_column(scores[0][j][e], at, params_);
        } else {
          slope = Slopes::of_row(scores[0][j][e], at, params_);
        }
#ifdef kSoftmaxScore
        sums_[e / 2] += valid ? passed_on.of(j, e, scores[0][j][e], gradients[0][j][e], row, at) * slope : 0.0f;
#else
        sums_[e / 2] += valid ? gradients[0][j][e] * slope * factor_of(factors, row) : 0.0f;
#endif
      }
    }
  }

 private:
  __device__ __forceinline__ void classify_tile(int other0, bool& full, bool& visible) const {
    classify<Spec>(sequence_, kColumns ? other0 : own0_, kColumns ? own0_ : other0, full, visible);
  }

  const Params& params_;
  const Sequence sequence_;
  const int own0_, end_head_;
  int begin_, end_;  // of what passes by
  int head_, other_;
  float (&sums_)[2];  // of this thread's two rows
};

// To the tensor's elements of the rows from row0 up to `end`, with what the gradient is added to.
template <class Slopes, class Params>
__device__ __forceinline__ void store_slopes(const Params& params, const Sequence& sequence, int row0, int end,
                                             int head, const float (&sums)[2]) {
  const int first = row0 + static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = sums[half];
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int row = first + 8 * half;
    if (threadIdx.x % 4 != 0 || row >= end) continue;
    const auto place = [&](auto tensor) {
      if constexpr (Slopes::kByHead) return (sequence.start + row) * decltype(tensor)::row_stride(params) + head;
      return sequence.start + row;
    };
    store_gradient<Slopes>(params, place, sum);
  }
}

}  // namespace operand_gradients

// One CTA per (sequence, tile of rows), and head where the operand has heads. Tiles begin at the first row that q has;
// a CTA with delta has a tile of the rows before that one, too, which are columns alone.
template <class Slopes>
struct RowGradient {
  template <class Spec, class Config, class Params>
  static __device__ __forceinline__ void run(const Params& params) {
    using namespace operand_gradients;
    __shared__ __align__(128) unsigned char static_bytes[kStaticBytes];
    const u32 tiles = ceil_div(max_sequence_rows<Config>(params), kTileSize);
    u32 place = blockIdx.x / tiles;
    int head = 0, end_head = Spec::kHeads;
    if constexpr (Slopes::kByHead) {
      head = static_cast<int>(place % Spec::kHeads);
      end_head = head + 1;
      place /= Spec::kHeads;
    }
    const int index = static_cast<int>(place);
    const Sequence sequence = sequence_of<Spec, Config>(params, index);
    const int first = static_cast<int>(blockIdx.x % tiles) * kTileSize;
    const u32 shared = shared_address(static_bytes);
    if constexpr (Config::kDelta) {
      add_up<Spec, Config, false>(params, sequence, index, shared, first, first_query_row(sequence), head, end_head);
      __syncthreads();  // the buffers are no longer read
    }
    add_up<Spec, Config, Slopes::kByRow>(params, sequence, index, shared, first_query_row(sequence) + first,
                                         sequence.rows, head, end_head);
  }

 private:
  // A tile of the rows from row0 up to `end`, over the pairs whose row, with kByRow, or whose column they are.
  template <class Spec, class Config, bool kByRow, class Params>
  static __device__ __forceinline__ void add_up(const Params& params, const Sequence& sequence, int index, u32 shared,
                                                int row0, int end, int head, int end_head) {
    using namespace operand_gradients;
    if (row0 >= end) return;
    float sums[2] = {0.0f, 0.0f};
    if constexpr (kByRow) {
      SlopeSums<Spec, Config, Params, Slopes, false> by_row(params, sequence, row0, head, end_head, sums);
      TilePairs<Spec, Params>(params, sequence, index, shared, row0).run(by_row);
    }
    if constexpr (Slopes::kByColumn) {
      __syncthreads();  // the buffers of the first pass are no longer read
      SlopeSums<Spec, Config, Params, Slopes, true> by_column(params, sequence, row0, head, end_head, sums);
      TilePairs<Spec, Params, true>(params, sequence, index, shared, row0).run(by_column);
    }
    store_slopes<Slopes>(params, sequence, row0, end, head, sums);
  }
};
