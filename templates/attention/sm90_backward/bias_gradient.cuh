// Attention backward on Hopper: the gradient of the bias, by a kernel that follows the one of the other gradients.
//
// It computes what bias_gradient of operands/gradients/kernels.cuh does, in the same order, by wgmma. A CTA has a tile
// of rows of one (sequence, head of the bias), and some tiles of columns one after the other. The heads that share the
// head of the bias pass by in chunks of 64 head columns: one warp loads q and k, or dout and v, and warpgroups multiply
// 64 rows each and add up dS in registers.
#pragma once
#include "attention/operands/gradients/kernels.cuh"
#include "attention/sm90_backward/bias_tile.cuh"
#include "attention/sm90_backward/shared.cuh"
#include "common/ptx/tma.cuh"

namespace sm90::bias_gradient {

using operand_gradients::BiasSums;
using operand_gradients::KvTile;
constexpr int kPart = operand_gradients::kTileSize;  // rows of a warpgroup, and columns of what BiasSums has
constexpr int kWarpgroups = 2, kRows = kWarpgroups * kPart;
constexpr int kParts = 2, kColumns = kParts * kPart;  // of a tile of columns
constexpr int kColumnTiles = 4;                       // of a CTA
constexpr int kBiasStages = 2;

template <class Config>
struct Shared {
  unsigned char rows[Config::kPairStages][kRows * kSwizzleBytes];
  unsigned char columns[Config::kPairStages][kColumns * kSwizzleBytes];
  unsigned char bias[kBiasStages][kParts][kRows * kSwizzleBytes];
  u64 full[Config::kPairStages];
  u64 empty[Config::kPairStages];
  u64 bias_full[kBiasStages];
  u64 bias_empty[kBiasStages];
};

template <class Spec, class Config, class Params>
struct Place {
  int index, bias_head;  // of the sequence in the batch, of the bias
  int row0, column0;     // first of the CTA's, within the sequence
  Sequence sequence;

  // Tiles of the last rows, which see most columns under a causal mask, come first.
  __device__ __forceinline__ explicit Place(const Params& params) {
    const u32 row_tiles = ceil_div(params.max_query_rows, kRows),
              groups = ceil_div(params.max_query_rows, kColumns * kColumnTiles);
    const u32 pair = blockIdx.x / groups / row_tiles;
    column0 = static_cast<int>(blockIdx.x % groups) * (kColumns * kColumnTiles);
    row0 = static_cast<int>(row_tiles - 1 - blockIdx.x / groups % row_tiles) * kRows;
    bias_head = static_cast<int>(pair % Spec::Bias::kHeads);
    index = static_cast<int>(pair / Spec::Bias::kHeads);
    sequence = sequence_of<Spec, Config>(params, index);
  }

  // Whether some warpgroup sees one of a tile's columns.
  __device__ __forceinline__ bool visible(int first_column) const {
    bool some = false;
#pragma unroll 1
    for (int i = 0; i < kWarpgroups * kParts; ++i) {
      bool full, visible;
      operand_gradients::classify<Spec>(sequence, row0 + i / kParts * kPart, first_column + i % kParts * kPart, full,
                                        visible);
      some = some || visible;
    }
    return some;
  }

  // Calls what(first_column) for each tile of columns within the bias.
  template <class What>
  __device__ __forceinline__ void for_each_tile(const Params& params, const What& what) const {
#pragma unroll 1
    for (int tile = 0; tile < kColumnTiles; ++tile) {
      const int first_column = column0 + tile * kColumns;
      if (first_column >= params.max_query_rows) return;
      what(first_column);
    }
  }
};

template <class Spec>
constexpr int kHeadsOfBias = Spec::kHeads / Spec::Bias::kHeads;
template <class Spec>
constexpr int kAttnChunks = ceil_div(Spec::kAttnDim, kSwizzleColumns);
template <class Spec>
constexpr int kHiddenChunks = ceil_div(Spec::kHiddenDim, kSwizzleColumns);

// Loads all chunks in the order in which they are multiplied. One lane.
template <class Spec, class Config, class Params>
__device__ void produce(Shared<Config>& shared, const Params& params) {
  const Place<Spec, Config, Params> place(params);
  PipelineState<Config::kPairStages> pipeline;
  const auto load = [&](const TensorMap& rows, const TensorMap& columns, int chunks, int head, int first_column) {
    const int start = static_cast<int>(place.sequence.start);
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int s = pipeline.stage();
      const u32 full = shared_address(&shared.full[s]);
      mbarrier_wait(shared_address(&shared.empty[s]), pipeline.phase() ^ 1);
      mbarrier_arrive_expect_tx(full, (kRows + kColumns) * kSwizzleBytes);
      cp_async_bulk_tensor_3d(shared_address(shared.rows[s]), rows, full, chunk * kSwizzleColumns, head,
                              start + place.row0);
      cp_async_bulk_tensor_3d(shared_address(shared.columns[s]), columns, full, chunk * kSwizzleColumns, head,
                              start + first_column);
      pipeline.advance();
    }
  };
  place.for_each_tile(params, [&](int first_column) {
    if (!place.visible(first_column)) return;
#pragma unroll 1
    for (int i = 0; i < kHeadsOfBias<Spec>; ++i) {
      const int head = place.bias_head * kHeadsOfBias<Spec> + i;
      load(params.dout_tile_map, params.v_tile_map, kHiddenChunks<Spec>, head, first_column);
      load(params.q_tile_map, params.k_tile_map, kAttnChunks<Spec>, head, first_column);
    }
  });
}

// Loads the bias of each tile of columns. One warp.
template <class Spec, class Config, class Params>
__device__ void bring_bias(Shared<Config>& shared, const Params& params) {
  const Place<Spec, Config, Params> place(params);
  PipelineState<kBiasStages> stages;
  place.for_each_tile(params, [&](int first_column) {
    if (!place.visible(first_column)) return;
    const int s = stages.stage();
    mbarrier_wait(shared_address(&shared.bias_empty[s]), stages.phase() ^ 1);
    const backward::BiasPlace tile = {place.index, place.bias_head * kHeadsOfBias<Spec>, place.row0, first_column,
                                      place.sequence.rows};
    backward::load_bias_tile<kRows, kColumns, Spec>(params, tile, shared_address(shared.bias[s]), shared.bias_full[s]);
    stages.advance();
  });
}

// A consumer warpgroup.
template <class Spec, class Config, class Params>
class Consumer {
 public:
  __device__ __forceinline__ Consumer(Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), place_(params), warpgroup_(static_cast<int>(threadIdx.x) / kWarpgroup) {}

  __device__ __forceinline__ void run() {
    place_.for_each_tile(params_, [&](int first_column) { work_on(first_column); });
  }

 private:
  using Sums = BiasSums<Spec, Config, Params>;
  static constexpr int kScores = kColumns / 2;  // accumulators of S a thread holds, and of dP
  static constexpr int kPartScores = kScores / kParts;
  static_assert(kParts == 2);

  __device__ __forceinline__ void work_on(int first_column) {
    bool visible_low, visible_high;
    Sums low = sums_of(first_column, visible_low), high = sums_of(first_column + kPart, visible_high);
    const bool loaded = place_.visible(first_column);
    if (loaded) {
      mbarrier_wait(shared_address(&shared_.bias_full[bias_.stage()]), bias_.phase());
      KvTile kv_tile;
#pragma unroll 1
      while (low.next(kv_tile)) {
        if (visible_low || visible_high) {
#ifdef kDropout
          low.draw_dropout(kv_tile);
          high.draw_dropout(kv_tile);
#endif
          multiply();
          add<0>(kv_tile, low);
          add<1>(kv_tile, high);
        } else {
          pass_by();
        }
      }
      release_warp<Config::kLanesArrive>(shared_.bias_empty[bias_.stage()]);
      bias_.advance();
    }
    if (!Config::kAddsGradients && !loaded) return store_zeroes(first_column);
    finish(low, first_column, visible_low);
    finish(high, first_column + kPart, visible_high);
  }

  __device__ __forceinline__ Sums sums_of(int column0, bool& visible) const {
    bool full;
    operand_gradients::classify<Spec>(place_.sequence, place_.row0 + warpgroup_ * kPart, column0, full, visible);
    return Sums(params_, place_.sequence, place_.bias_head, place_.row0, column0, full, visible);
  }

  template <int kWhich>
  __device__ __forceinline__ void add(const KvTile& kv_tile, Sums& sums) {
    operand_gradients::Scores scores, gradients;
#pragma unroll
    for (int i = 0; i < kPartScores; ++i) {
      scores[0][i / 4][i % 4] = scores_[kWhich * kPartScores + i];
      gradients[0][i / 4][i % 4] = gradients_[kWhich * kPartScores + i];
    }
    sums.add(kv_tile, scores, gradients);
  }

  // dP and then S, which begins with the bias: it is read while dP is multiplied. Accumulators that were set in
  // branches are tied down first; the assembler would order, and so serialise, all products there (C7520).
  __device__ __forceinline__ void multiply() {
    clear(gradients_);
    wgmma_keep_in_place(gradients_);
    issue<PairGradientProduct>(kHiddenChunks<Spec>, gradients_);
    const u32 own_rows = shared_address(shared_.bias[bias_.stage()]) + threadIdx.x / 32 * 16 * kSwizzleBytes;
    backward::begin_with_bias<Spec>(own_rows, kRows * kSwizzleBytes, scores_);
    wgmma_wait_group<0>();
    wgmma_keep_in_place(gradients_);
    release(kHiddenChunks<Spec>);
    wgmma_keep_in_place(scores_);
    issue<PairScoreProduct>(kAttnChunks<Spec>, scores_);
    wgmma_wait_group<0>();
    wgmma_keep_in_place(scores_);
    release(kAttnChunks<Spec>);
  }

  template <class Product>
  __device__ __forceinline__ void issue(int chunks, float (&sums)[kScores]) {
    PipelineState<Config::kPairStages> chunk = pipeline_;
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      mbarrier_wait(shared_address(&shared_.full[chunk.stage()]), chunk.phase());
      wgmma_fence();
      Product::issue(sums,
                     wgmma_operand(shared_address(shared_.rows[chunk.stage()]) + warpgroup_ * kPart * kSwizzleBytes),
                     wgmma_operand(shared_address(shared_.columns[chunk.stage()])));
      chunk.advance();
    }
    wgmma_commit_group();
  }

  __device__ __forceinline__ void release(int chunks) {
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      release_warp<Config::kLanesArrive>(shared_.empty[pipeline_.stage()]);
      pipeline_.advance();
    }
  }

  // Gives back the chunks that the other warpgroup alone multiplies.
  __device__ __forceinline__ void pass_by() {
#pragma unroll 1
    for (int i = 0; i < kHiddenChunks<Spec> + kAttnChunks<Spec>; ++i) {
      mbarrier_wait(shared_address(&shared_.full[pipeline_.stage()]), pipeline_.phase());
      release(1);
    }
  }

  static __device__ __forceinline__ void clear(float (&sums)[kScores]) {
#pragma unroll
    for (float& sum : sums) sum = 0.0f;
  }

  // Stores a tile that nobody sees, by all consumers.
  __device__ __forceinline__ void store_zeroes(int first_column) const {
    using Gradient = typename Spec::Bias::Gradient;
    constexpr int kPiece = 8, kPieces = kColumns / kPiece;  // columns of 16 bytes
    const int size = params_.max_query_rows;
    u16* const head = Gradient::data(params_) + (place_.index * Gradient::batch_stride(params_) +
                                                 place_.bias_head * Gradient::head_stride(params_));
#pragma unroll 1
    for (int i = threadIdx.x; i < kRows * kPieces; i += kWarpgroups * kWarpgroup) {
      const int row = place_.row0 + i / kPieces, column = first_column + i % kPieces * kPiece;
      if (row >= size || column >= size) continue;
      u16* const piece = head + (row * Gradient::row_stride(params_) + column);
      if (column + kPiece <= size) {
        *reinterpret_cast<uint4*>(piece) = make_uint4(0, 0, 0, 0);
      } else {
        for (int j = 0; column + j < size; ++j) piece[j] = 0;
      }
    }
  }

  __device__ __forceinline__ void finish(Sums& sums, int column0, bool visible) {
    using Gradient = typename Spec::Bias::Gradient;
    if (column0 >= params_.max_query_rows) return;
    if (visible) sums.finish(place_.sequence.start, place_.sequence.rows);
    if constexpr (Config::kAddsGradients) {
      using Before = typename Spec::Bias::Before;
      if (!visible && Gradient::data(params_) == Before::data(params_)) return;  // nothing is added
      sums.add_before(place_.index * Before::batch_stride(params_) + place_.bias_head * Before::head_stride(params_));
    }
    const i64 first =
        place_.index * Gradient::batch_stride(params_) + place_.bias_head * Gradient::head_stride(params_);
    operand_gradients::store_tile<Spec, Config>(params_, first, place_.row0, column0, sums.sums());
  }

  Shared<Config>& shared_;
  const Params& params_;
  const Place<Spec, Config, Params> place_;
  const int warpgroup_;
  PipelineState<Config::kPairStages> pipeline_;
  PipelineState<kBiasStages> bias_;
  float scores_[kScores];     // S
  float gradients_[kScores];  // dP
};

}  // namespace sm90::bias_gradient

// One CTA per (sequence, bias head, tile of rows, some tiles of columns). Writes all of the gradient, zeroes where
// there is nothing to add up.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void wgmma_bias_gradient(const Params& params) {
  using namespace sm90::bias_gradient;
  using SharedMemory = Shared<Config>;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  static_assert(sizeof(SharedMemory) <= Config::kPairSharedBytes,
                "the host side and the template disagree on shared memory");
  SharedMemory& shared = *reinterpret_cast<SharedMemory*>(shared_bytes);
  constexpr int kConsumerWarps = kWarpgroups * sm90::kWarpgroup / 32;
  if (threadIdx.x == 0) {
    constexpr int kReleases = kConsumerWarps * sm90::kArrivalsPerWarp<Config::kLanesArrive>;
    for (int i = 0; i < Config::kPairStages; ++i) {
      mbarrier_init(shared_address(&shared.full[i]), 1);
      mbarrier_init(shared_address(&shared.empty[i]), kReleases);
    }
    for (int i = 0; i < kBiasStages; ++i) {
      mbarrier_init(shared_address(&shared.bias_full[i]), 32);
      mbarrier_init(shared_address(&shared.bias_empty[i]), kReleases);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  const int warp = threadIdx.x / 32;
  if (warp >= kConsumerWarps) {
    setmaxnreg_dec<Config::kPairProducerRegisters>();
    if (warp == kConsumerWarps && threadIdx.x % 32 == 0) produce<Spec, Config>(shared, params);
    if (warp == kConsumerWarps + 1) bring_bias<Spec, Config>(shared, params);
  } else {
    setmaxnreg_inc<Config::kPairConsumerRegisters>();
    Consumer<Spec, Config, Params>(shared, params).run();
  }
}
