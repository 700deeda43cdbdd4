// Attention backward: S and dP of tiles of 64 rows and 64 columns, by mma.sync, for the gradients of operands. A CTA
// has the rows; tiles follow one another through two buffers of chunks of head columns. With kTransposed it has the
// columns, and rows pass by: what is called a row here is then a column, S and dP are transposed.
#pragma once
#include "attention/sm80/bias.cuh"
#include "attention/sm80/load.cuh"
#include "attention/sm80/products.cuh"
#include "common/jagged.cuh"
#include "common/ptx/cp_async.cuh"

namespace operand_gradients {

constexpr int kTileSize = 64;  // rows and columns of a tile
constexpr int kWarps = 4;      // each with 16 rows and all columns
constexpr int kThreads = 32 * kWarps;
[[maybe_unused]] constexpr int kSumThreads = 256;  // of add_row_sums
constexpr int kFragments = kTileSize / 8;
constexpr int kMaxChunkBytes = 128;  // of a row: chunks of the head dimension pass by
constexpr int kBuffers = 2;
constexpr int kOperandBytes = kTileSize * kMaxChunkBytes;
[[maybe_unused]] constexpr int kStaticBytes = kBuffers * 2 * kOperandBytes;

using Scores = float[1][kFragments][4];  // of a warp: S, or dP

// Constants that sm80::Shape and sm80::Loader read of a Config.
struct Tiling {
  static constexpr int kBlockM = kTileSize, kBlockN = kTileSize, kChunkColumns = kTileSize;
  static constexpr int kWarps = operand_gradients::kWarps, kThreads = operand_gradients::kThreads;
  static constexpr int kQueryInRegisters = 0;
};

// Two tensors with kWidth columns whose rows are multiplied, in chunks of whole 16-byte pieces. The members are those
// of sm80::Shape that products use.
template <class Spec, int kWidth>
struct Factors {
  using Base = sm80::Shape<Spec, Tiling>;
  static constexpr sm80::Product kProduct = Base::kProduct;
  static constexpr int kBytes = kWidth * Base::kElementBytes;  // of a row in global memory
  static constexpr int kChunks = ceil_div(kBytes, kMaxChunkBytes);
  static constexpr int kQkBytes = ceil_div(kBytes, kChunks* sm80::kPieceBytes) * sm80::kPieceBytes;  // of a chunk
  static constexpr int kQkSteps = ceil_div(kQkBytes, sm80::kPieceStepBytes);
  static constexpr bool kQueryInRegisters = false;
  static constexpr int kRowTiles = Base::kRowTiles;
  static constexpr int kScoreTiles = Base::kScoreTiles;

  using QkTile = sm80::Tile<kQkSteps * sm80::kPieceStepBytes, false>;
  using VTile = QkTile;
  using Scores = typename Base::Scores;
  using Outputs = float[kRowTiles][1][4];  // none
};

template <class Spec>
using Attn = Factors<Spec, Spec::kAttnDim>;
template <class Spec>
using Hidden = Factors<Spec, Spec::kHiddenDim>;
template <class Spec>
using Products = sm80::Products<Attn<Spec>>;

struct KvTile {
  int head;
  int column0;
};

template <class Spec, class Params, bool kTransposed = false>
class TilePairs {
 public:
  __device__ __forceinline__ TilePairs(const Params& params, const Sequence& sequence, int index, u32 shared, int row0)
      : params_(params), sequence_(sequence), index_(index), shared_(shared), row0_(row0) {}

  // All tiles of `job`, in its order. job.next(kv_tile): the next tile, or that there is none; job.add(kv_tile, scores,
  // gradients): takes S / alpha and dP of a tile, elements outside of the sequence being anything.
  template <class Job>
  __device__ __forceinline__ void run(Job& job) {
    KvTile kv_tile, following;
    if (!job.next(kv_tile)) return;
    load(kv_tile, 0, 0);
    cp_async_commit_group();
    u32 buffer = 0;
    bool more = true;
    while (more) {
      more = job.next(following);
      Scores scores, gradients;
      begin_scores(kv_tile, scores);
      sm80::clear_fragments(gradients);
#pragma unroll 1
      for (int chunk = 0; chunk < kChunks; ++chunk) {
        cp_async_wait_group<0>();
        round(chunk, buffer);
        __syncthreads();  // this buffer can be read, and the other one be filled
        if (chunk + 1 < kChunks) {
          load(kv_tile, chunk + 1, buffer ^ 1);
        } else if (more) {
          load(following, 0, buffer ^ 1);
        }
        cp_async_commit_group();
        if (chunk < Attn<Spec>::kChunks) {
          multiply<Attn<Spec>>(attn_, buffer, scores);
        } else {
          multiply<Hidden<Spec>>(hidden_, buffer, gradients);
        }
        buffer ^= 1;
      }
      job.add(kv_tile, scores, gradients);
      kv_tile = following;
    }
  }

 private:
  using Load = sm80::Loader<Spec, Tiling>;
  static constexpr int kChunks = Attn<Spec>::kChunks + Hidden<Spec>::kChunks;
  static constexpr int kElementBytes = Spec::kDtypeFp32 ? 4 : 2;

  __device__ __forceinline__ u32 rows_tile(u32 buffer) const { return shared_ + buffer * 2 * kOperandBytes; }
  __device__ __forceinline__ u32 columns_tile(u32 buffer) const { return rows_tile(buffer) + kOperandBytes; }

  // S begins with the bias, where there is one.
  __device__ __forceinline__ void begin_scores(const KvTile& kv_tile, Scores& scores) const {
    if constexpr (Spec::Bias::kHeads > 0) {
      const HeadBias<Spec, Params> bias(params_, index_, kv_tile.head, sequence_.rows);
      const int row = row0_ + static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
      if constexpr (kTransposed) {
        sm80::begin_columns_with<Attn<Spec>>(bias, row, kv_tile.column0, scores);
      } else {
        sm80::begin_rows_with<Spec, Attn<Spec>>(bias, row, kv_tile.column0, scores);
      }
    } else {
      sm80::clear_fragments(scores);
    }
  }

  // A chunk of q and k, or of dout and v.
  __device__ __forceinline__ void load(const KvTile& kv_tile, int chunk, u32 buffer) const {
    const auto& p = params_;
    if (chunk < Attn<Spec>::kChunks) {
      load_rows<Attn<Spec>, true>(p.q, p.q_row_stride, p.q_head_stride, kv_tile.head, query_row0(kv_tile), chunk,
                                  query_tile(buffer));
      load_rows<Attn<Spec>, false>(p.k, p.k_row_stride, p.k_head_stride, kv_tile.head, key_row0(kv_tile), chunk,
                                   key_tile(buffer));
    } else {
      chunk -= Attn<Spec>::kChunks;
      load_rows<Hidden<Spec>, true>(p.dout, p.dout_row_stride, p.dout_head_stride, kv_tile.head, query_row0(kv_tile),
                                    chunk, query_tile(buffer));
      load_rows<Hidden<Spec>, false>(p.v, p.v_row_stride, p.v_head_stride, kv_tile.head, key_row0(kv_tile), chunk,
                                     key_tile(buffer));
    }
  }

  // The first row of q and dout, and of k and v, and where they lie.
  __device__ __forceinline__ int query_row0(const KvTile& kv_tile) const {
    return kTransposed ? kv_tile.column0 : row0_;
  }
  __device__ __forceinline__ int key_row0(const KvTile& kv_tile) const { return kTransposed ? row0_ : kv_tile.column0; }
  __device__ __forceinline__ u32 query_tile(u32 buffer) const {
    return kTransposed ? columns_tile(buffer) : rows_tile(buffer);
  }
  __device__ __forceinline__ u32 key_tile(u32 buffer) const {
    return kTransposed ? rows_tile(buffer) : columns_tile(buffer);
  }

  // From row `first` of the sequence on; what is past its end, or past the head's columns, becomes zero. `kOfQ`: the
  // tensor has the rows of q, else those of k.
  template <class F, bool kOfQ, class Pointer>
  __device__ __forceinline__ void load_rows(Pointer tensor, i64 row_stride, i64 head_stride, int head, int first,
                                            int chunk, u32 tile) const {
    const i64 start = kOfQ ? sequence_.query_start : sequence_.start;
    const char* source = reinterpret_cast<const char*>(tensor) +
                         ((start + first) * row_stride + head * head_stride) * kElementBytes + chunk * F::kQkBytes;
    const int rows = sequence_.rows - first, bytes = F::kBytes - chunk * F::kQkBytes;
    sm80::for_each_piece<kTileSize, F::QkTile::kRowBytes, Load::kPiece, kThreads>([&](int row, int byte) {
      const bool valid = row < rows && byte < F::kQkBytes && byte < bytes;
      Load::load_piece(tile + F::QkTile::offset(row, byte),
                       source + (valid ? row * row_stride * kElementBytes + byte : 0), valid,
                       Load::template bytes_left<F::kBytes>(chunk * F::kQkBytes + byte));
    });
  }

  __device__ __forceinline__ void round(int chunk, u32 buffer) const {
    if (chunk < Attn<Spec>::kChunks) {
      round_rows<Attn<Spec>>(buffer);
    } else {
      round_rows<Hidden<Spec>>(buffer);
    }
  }

  template <class F>
  __device__ __forceinline__ void round_rows(u32 buffer) const {
    Load::template round<typename F::QkTile, kTileSize, F::QkTile::kRowBytes>(rows_tile(buffer));
    Load::template round<typename F::QkTile, kTileSize, F::QkTile::kRowBytes>(columns_tile(buffer));
  }

  template <class F>
  __device__ __forceinline__ void multiply(sm80::Products<F>& products, u32 buffer, Scores& sums) const {
    products.set_queries(rows_tile(buffer) + threadIdx.x / 32 * 16 * F::QkTile::kRowBytes);
    products.add_scores(columns_tile(buffer), sums);
  }

  const Params& params_;
  const Sequence sequence_;
  const int index_;  // its number in the batch
  const u32 shared_;
  const int row0_;
  sm80::Products<Attn<Spec>> attn_;
  sm80::Products<Hidden<Spec>> hidden_;
};

}  // namespace operand_gradients
