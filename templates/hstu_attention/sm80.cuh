// Attention forward for Ampere and Ada (sm_80 and later): cp.async pipeline, mma.sync, one row tile a block.
//
// A block loads its rows of q once and walks over column blocks of k and v; each warp owns 16 or 32 rows of the tile. A
// column block is worked off in chunks, S = q k^T, P = score(S) under the mask, O += P v, all in registers: there is no
// softmax, so chunks are independent and the size of a block in shared memory does not decide how many registers are
// needed. bf16, fp16, fp32 by tf32 products, fp32 by fused multiply-adds. Of hstu_attention and
// delta_hstu_attention; formulas: docs/ops.md.
// Generated around it: see docs/generated-source.md.
#pragma once
#include "common/math.cuh"
#include "common/regions.cuh"
#include "hstu_attention/queries.cuh"
#include "hstu_attention/sm80_load.cuh"
#include "hstu_attention/sm80_products.cuh"
#include "hstu_attention/sm80_store.cuh"

namespace sm80 {

struct Block {
  int column0;  // negative when there is none
  bool must;    // every pair of the tile's rows and the block's columns is valid
};

// Walks over the column blocks that a row tile may see.
template <class Spec, class Config>
class BlockCursor {
 public:
  __device__ __forceinline__ BlockCursor(int row0, const Sequence& sequence)
      : row0_(row0),
        row1_(min(row0 + Config::kBlockM, sequence.rows) - 1),
        rows_(sequence.rows),
        targets_(sequence.targets) {
    mask_columns(row0_, row1_, rows_, targets_, column_, end_);
    column_ = max(column_, 0);
    end_ = min(end_, rows_);
  }

  __device__ __forceinline__ Block next() {
    while (column_ < end_) {
      const int column0 = column_;
      column_ += Config::kBlockN;
      bool must = true, may = true;
      if constexpr (!Spec::kMaskTrivial) {
        mask_tile(row0_, row1_, column0, min(column0 + Config::kBlockN, rows_) - 1, rows_, targets_, must, may);
      }
      if (may) return {column0, must && column0 + Config::kBlockN <= rows_};
    }
    return {-1, false};
  }

 private:
  int row0_, row1_, rows_, targets_;
  int column_, end_;
};

template <class Spec, class Config, class Params>
class Worker {
 public:
  using S = Shape<Spec, Config>;

  __device__ __forceinline__ Worker(const Params& params, u32 shared, const Sequence& sequence, int head, int row0)
      : params_(params), shared_(shared), sequence_(sequence), head_(head), row0_(row0) {
    warp_row0_ = static_cast<int>(threadIdx.x) / 32 * S::kWarpRows;
  }

  __device__ __forceinline__ void run() {
    prepare();
    walk();
    char* out = reinterpret_cast<char*>(params_.out) + sequence_.query_start * params_.out_row_stride * S::kElementBytes +
                head_ * params_.out_head_stride * S::kElementBytes;
    store_outputs<Spec, Config>(out, params_.out_row_stride * S::kElementBytes, row0_ + warp_row0_, sequence_.rows,
                                outputs_, params_.inverse_scale);
  }

 private:
  using Load = Loader<Spec, Config>;
  using Scores = typename S::Scores;
  using Products = typename ProductsOf<S::kProduct == Product::kIeee, Spec, Config>::Type;
  static constexpr int kAhead = Config::kStages - 1;  // column blocks on their way while one is worked on
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
  __device__ __forceinline__ const char* place(Pointer tensor, i64 row_stride, i64 head_stride, i64 row) const {
    return reinterpret_cast<const char*>(tensor) + (row * row_stride + head_ * head_stride) * S::kElementBytes;
  }

  __device__ __forceinline__ void prepare() {
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < S::kOutputTiles; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) outputs_[i][j][e] = 0.0f;
      }
    }
    Load::template zero_padding<typename S::QkTile, Config::kBlockM, S::kQkBytes>(q_tile());
#pragma unroll
    for (int stage = 0; stage < Config::kStages; ++stage) {
      Load::template zero_padding<typename S::QkTile, Config::kBlockN, S::kQkBytes>(k_tile(stage));
    }
    Load::template load<typename S::QkTile, Config::kBlockM, S::kQkBytes>(
        q_tile(), place(params_.q, params_.q_row_stride, params_.q_head_stride, sequence_.query_start + row0_),
        params_.q_row_stride * S::kElementBytes, sequence_.rows - row0_);
    cp_async_commit_group();
  }

  __device__ __forceinline__ void load_block(const Block& block, int stage) {
    const int rows = sequence_.rows - block.column0;
    Load::template load<typename S::QkTile, Config::kBlockN, S::kQkBytes>(
        k_tile(stage), place(params_.k, params_.k_row_stride, params_.k_head_stride, sequence_.start + block.column0),
        params_.k_row_stride * S::kElementBytes, rows);
    Load::template load<typename S::VTile, Config::kBlockN, S::kVBytes>(
        v_tile(stage), place(params_.v, params_.v_row_stride, params_.v_head_stride, sequence_.start + block.column0),
        params_.v_row_stride * S::kElementBytes, rows);
  }

  __device__ __forceinline__ void walk() {
    BlockCursor<Spec, Config> cursor(row0_, sequence_);
    Block queue[kAhead + 1];  // the block to work on, then those on their way
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      queue[i] = cursor.next();
      if (queue[i].column0 >= 0) load_block(queue[i], i);
      cp_async_commit_group();
    }
    cp_async_wait_group<kAhead>();
    Load::template round<typename S::QkTile, Config::kBlockM, S::kQkBytes>(q_tile());
    __syncthreads();
    products_.set_queries(q_tile() + warp_row0_ * S::QkTile::kRowBytes);

    // The stage that is filled is the one that was read in the iteration before: the barrier lies between the two.
    int stage = 0, fill = kAhead;
    while (true) {
      if constexpr (kAhead == 0) {
        queue[0] = cursor.next();
        if (queue[0].column0 < 0) return;
        load_block(queue[0], 0);
        cp_async_commit_group();
        cp_async_wait_group<0>();
      } else {
        if (queue[0].column0 < 0) return;
        cp_async_wait_group<kAhead - 1>();
      }
      Load::template round<typename S::QkTile, Config::kBlockN, S::kQkBytes>(k_tile(stage));
      Load::template round<typename S::VTile, Config::kBlockN, S::kVBytes>(v_tile(stage));
      __syncthreads();
      if constexpr (kAhead > 0) {
        queue[kAhead] = cursor.next();
        if (queue[kAhead].column0 >= 0) load_block(queue[kAhead], fill);
        cp_async_commit_group();
      }
      multiply(queue[0], stage);
      if constexpr (kAhead == 0) {
        __syncthreads();
      } else {
#pragma unroll
        for (int i = 0; i < kAhead; ++i) queue[i] = queue[i + 1];
        fill = stage;
        stage = stage + 1 == Config::kStages ? 0 : stage + 1;
      }
    }
  }

  // A block that is not valid throughout is looked at again, chunk by chunk and for this warp's rows alone.
  __device__ __forceinline__ void multiply(const Block& block, int stage) {
    const int row0 = row0_ + warp_row0_;
    if (row0 >= sequence_.rows) return;
    if (block.must) {
#pragma unroll kUnrolledChunks
      for (int chunk = 0; chunk < S::kChunks; ++chunk) {
        Scores scores;
        products_.multiply_scores(k_chunk(stage, chunk), scores);
        activate<false>(scores, 0);
        products_.multiply_outputs(v_chunk(stage, chunk), scores, outputs_);
      }
      return;
    }
    const int row1 = min(row0 + S::kWarpRows, sequence_.rows) - 1;
#pragma unroll 1
    for (int chunk = 0; chunk < S::kChunks; ++chunk) {
      const int column0 = block.column0 + chunk * Config::kChunkColumns;
      if (column0 >= sequence_.rows) return;
      bool must = true, may = true;
      if constexpr (!Spec::kMaskTrivial) {
        const int column1 = min(column0 + Config::kChunkColumns, sequence_.rows) - 1;
        mask_tile(row0, row1, column0, column1, sequence_.rows, sequence_.targets, must, may);
        if (!may) continue;
      }
      Scores scores;
      products_.multiply_scores(k_chunk(stage, chunk), scores);
      if (must && column0 + Config::kChunkColumns <= sequence_.rows) {
        activate<false>(scores, column0);
      } else {
        activate<true>(scores, column0);
      }
      products_.multiply_outputs(v_chunk(stage, chunk), scores, outputs_);
    }
  }

  __device__ __forceinline__ u32 k_chunk(int stage, int chunk) const {
    return k_tile(stage) + chunk * Config::kChunkColumns * S::QkTile::kRowBytes;
  }
  __device__ __forceinline__ u32 v_chunk(int stage, int chunk) const {
    return v_tile(stage) + chunk * Config::kChunkColumns * S::VTile::kRowBytes;
  }

  // Invalid pairs are replaced, not multiplied by zero: their score may be anything.
  template <bool kMasked>
  __device__ __forceinline__ void activate(Scores& scores, int column0) const {
    const int row = row0_ + warp_row0_ + static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
      for (int j = 0; j < S::kScoreTiles; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float y = score(scores[i][j][e], params_.alpha);
          if constexpr (kMasked) {
            const int column = column0 + 8 * j + Products::score_column(e % 2);
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
  const int head_;
  const int row0_;  // the tile's first row within the sequence
  int warp_row0_;   // the warp's first row within the tile
  Products products_;
  typename S::Outputs outputs_;
};

}  // namespace sm80

// One block per (row tile, sequence, head), the last row tiles of all sequences first: under a causal mask they are the
// longest. Blocks past a sequence's end leave at once.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace sm80;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  static_assert(sizeof(Shared<Spec, Config>) == Config::kSharedBytes,
                "the host face and the template disagree on shared memory");

  const int pairs = static_cast<int>(params.batch) * Spec::kHeads;
  const int rank = static_cast<int>(blockIdx.x) / pairs, pair = static_cast<int>(blockIdx.x) % pairs;
  const Sequence sequence = sequence_of<Spec, Config>(params, pair / Spec::kHeads);
  const int row_tile = ceil_div(params.max_query_rows, Config::kBlockM) - 1 - rank;
  if (row_tile * Config::kBlockM >= sequence.rows - sequence.query_begin) return;
  const int row0 = sequence.query_begin + row_tile * Config::kBlockM;
  Worker<Spec, Config, Params>(params, shared_address(shared_bytes), sequence, pair % Spec::kHeads, row0).run();
}
