// Attention backward on Hopper, dS computed once: the kernel in front of it for heads with softmax, which finds the
// RowStatistics of each row.
//
// A CTA has a tile of rows of one (sequence, head), 64 for each consumer warpgroup. KV tiles of 64 columns pass through
// a pipeline: S and dP (wgmma, both operands in shared memory), and of them, in registers, the largest S of each row
// and the sums of weights and of weights times dP relative to it. Warpgroups do not wait for one another, so that the
// products of one run beside the sums of others.
#pragma once
#include "attention/dropout.cuh"  // where kDropout
#include "attention/fragment_mask.cuh"
#include "attention/operands/pair.cuh"
#include "attention/pair.cuh"  // where kSoftmaxScore
#include "attention/sm90_backward/epilogue.cuh"
#include "attention/sm90_backward/producer.cuh"
#include "attention/softmax.cuh"
#include "common/ptx/prefetch.cuh"
#include "common/regions.cuh"

namespace sm90::backward {

// Constants that the producer and shared memory read of a Config, for this kernel's tiles. A column past the end of a
// sequence is left out of the sums, so no tail warp zeroes it.
template <class Config>
struct RowStatisticsConfig : Config {
  static constexpr int kConsumers = Config::kStatisticsConsumers, kBlockM = kConsumers * kWarpgroupRows;
  static constexpr int kStages = Config::kStatisticsStages, kStationaryStages = 1, kScheduleSequences = 1;
  static constexpr int kProducerRegisters = 0, kStoreWarp = 0;
  static constexpr bool kScheduleSemaphore = false, kSchedulePerSequence = false;
};

// The one tile of this CTA: those of a (sequence, head) follow one another from the last one on, which has most columns
// under a causal mask, so that they find its k and v in L2.
template <class Spec, class Config, class Params>
class OneRowTile {
 public:
  __device__ __forceinline__ explicit OneRowTile(const Params& params) {
    const u32 tiles = ceil_div(params.max_query_rows, Config::kBlockM), place = blockIdx.x / tiles;
    tile_.index = static_cast<int>(tiles - 1 - blockIdx.x % tiles);
    tile_.head = static_cast<int>(place % Spec::kNumSoftmaxHeads);
    tile_.sequence = static_cast<int>(place / Spec::kNumSoftmaxHeads);
    sequence_ = sequence_of<Spec, Config>(params, tile_.sequence);
  }

  __device__ __forceinline__ bool empty() const { return tile_.index * Config::kBlockM >= sequence_.rows; }

  // False when there is no further tile.
  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if (taken_) return false;
    taken_ = true;
    tile = tile_;
    sequence = sequence_;
    return true;
  }

 private:
  Tile tile_;
  Sequence sequence_;
  bool taken_ = false;
};

// A consumer warpgroup, which owns 64 rows of the tile. A thread has two of them, and of each KV tile 16 columns.
template <class Spec, class Config, class Params>
class RowStatisticsConsumer {
 public:
  __device__ __forceinline__ RowStatisticsConsumer(Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), warpgroup_(threadIdx.x / kWarpgroup) {}

  __device__ __forceinline__ void run() {
    mbarrier_wait(shared_address(&shared_.stationary_full[0]), 0);
    if (tile().has_work()) run_kv_tiles();
    store();
  }

 private:
  static constexpr int kScores = Config::kBlockN / 2;  // fp32 accumulators of S a thread holds, and of dP

  __device__ __forceinline__ const TileInfo& tile() const { return shared_.tile[0]; }
  // First of this thread's rows within the sequence; the other is 8 further on.
  __device__ __forceinline__ int row() const { return tile().row0 + warpgroup_ * kWarpgroupRows + thread_row(); }

  __device__ __forceinline__ void run_kv_tiles() {
    PipelineState<Config::kStages> pipeline;
    bool last = false;
    while (!last) {
      const int stage = pipeline.stage();
      mbarrier_wait(shared_address(&shared_.moving_full[stage]), pipeline.phase());
      const MovingTileInfo kv_tile = shared_.moving_tile[stage];
      last = kv_tile.flags & MovingTileInfo::kLast;
      const bool visible = kv_tile.flags & MovingTileInfo::visible(warpgroup_);
      if (visible) multiply(stage);
      release_warp<Config::kLanesArrive>(shared_.moving_empty[stage]);
      if (visible) add(kv_tile);
      pipeline.advance();
    }
  }

  __device__ __forceinline__ void multiply(int stage) {
    const u32 own_rows = warpgroup_ * kWarpgroupRows * kSwizzleBytes;
    const u32 q = wgmma_operand(shared_address(shared_.stationary_first[0]) + own_rows);
    const u32 dout = wgmma_operand(shared_address(shared_.stationary_second[0]) + own_rows);
    wgmma_fence();
    RowScoreProduct::issue(scores_, q, wgmma_operand(shared_address(shared_.moving_first[stage])));
    RowGradientProduct::issue(gradients_, dout, wgmma_operand(shared_address(shared_.moving_second[stage])));
    wgmma_commit_group();
    wgmma_wait_group<0>();
    wgmma_keep_in_place(scores_);
    wgmma_keep_in_place(gradients_);
  }

  // Adds a KV tile to the sums. Accumulator i is at row (i & 2 ? 8 : 0) and column 8 * (i / 4) + (i & 1), counted from
  // this thread's first ones.
  __device__ __forceinline__ void add(const MovingTileInfo& kv_tile) {
    if constexpr (Spec::Bias::kHeads > 0) {
      HeadBias<Spec, Params>(params_, tile().sequence(), tile().head, tile().rows)
          .template add_fragment<Config::kBlockN>(row(), kv_tile.row0, scores_);
    }
#ifdef kDropout
    drop_gradients(kv_tile.row0);
#endif
#ifdef kSoftmaxScore
    score_pairs(kv_tile.row0 + static_cast<int>(threadIdx.x) % 4 * 2);
#endif
    const float scale = softmax_scale(params_);
#pragma unroll
    for (float& x : scores_) x *= scale;
    const bool full = kv_tile.flags & MovingTileInfo::full(warpgroup_);
    if (!full || kv_tile.row0 + Config::kBlockN > tile().rows) leave_out_invalid(kv_tile);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = largest_[half];
      for_each(half, [&](int i) { largest = fmaxf(largest, scores_[i]); });
      const float base = softmax_base(largest);
      move_to(half, base);
      largest_[half] = largest;
      for_each(half, [&](int i) {
        const float weight = softmax_exp2<Config>(scores_[i] - base);
        sums_[half] += weight;
        products_[half] += weight * gradients_[i];
      });
    }
  }

#ifdef kSoftmaxScore
  // S to its score, of a tile in which this thread's first column is `column`.
  __device__ __forceinline__ void score_pairs(int column) {
    const int first_row = row();
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const auto at = [=] {
        const int down = i & 2 ? 8 : 0, right = i / 4 * 8 + (i & 1);
        return Pair{first_row + down, column + right, tile().rows, tile().targets,
                    tile().head,      tile().start,   down - right};
      };
      scores_[i] = score(scores_[i], at, params_);
    }
  }

#endif
#ifdef kDropout
  __device__ __forceinline__ void drop_gradients(int first_column) {
    KeptPairs<kScores, false> pairs;
    const Dropout<Params> dropout(params_, tile().start, tile().head);
    pairs.draw(dropout, tile().row0 + warpgroup_ * kWarpgroupRows + warp_row(), first_column);
#pragma unroll
    for (int i = 0; i < kScores; ++i) gradients_[i] = pairs.kept(i) ? gradients_[i] : 0.0f;
  }

#endif
  // Gives pairs that are not valid no weight. Columns past the end of the sequence hold anything.
  __device__ __forceinline__ void leave_out_invalid(const MovingTileInfo& kv_tile) {
    const int rows = tile().rows, row = this->row(), column = kv_tile.row0 + static_cast<int>(threadIdx.x) % 4 * 2;
    const FragmentMask<kScores> mask([&](int half, int further) {
      const int first = column + further;
      return mask_row_bits(row + 8 * half, first, rows, tile().targets) & ~bits_from(rows - first);
    });
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const bool valid = mask.valid(i);
      scores_[i] = valid ? scores_[i] : negative_infinity();
      gradients_[i] = valid ? gradients_[i] : 0.0f;
    }
  }

  template <class What>
  static __device__ __forceinline__ void for_each(int half, const What& what) {
#pragma unroll
    for (int i = 2 * half; i < kScores; i += 4) {
      what(i);
      what(i + 1);
    }
  }

  // Makes the sums of a row relative to another base.
  __device__ __forceinline__ void move_to(int half, float base) {
    const float kept = softmax_exp2<Config>(largest_[half] - base);
    sums_[half] *= kept;
    products_[half] *= kept;
  }

  __device__ __forceinline__ void store() {
    float2* const first = params_.softmax_rows + tile().start * Spec::kNumSoftmaxHeads + tile().head;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float base = softmax_base(quad_max(largest_[half]));
      move_to(half, base);
      const float sum = quad_sum(sums_[half]), product = quad_sum(products_[half]);
      const int row = this->row() + 8 * half;
      if (threadIdx.x % 4 != 0 || row >= tile().rows) continue;
      first[static_cast<i64>(row) * Spec::kNumSoftmaxHeads] =
          sum == 0.0f ? make_float2(-negative_infinity(), 0.0f) : make_float2(base + log2f(sum), product / sum);
    }
  }

  Shared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
  float scores_[kScores];     // S
  float gradients_[kScores];  // dP
  // Largest S and sums over this thread's columns, of each of its two rows; sums are relative to the largest S.
  float largest_[2] = {negative_infinity(), negative_infinity()};
  float sums_[2] = {0.0f, 0.0f}, products_[2] = {0.0f, 0.0f};
};

}  // namespace sm90::backward

// One CTA per (sequence, head with softmax, tile of rows). Comes before attention_gradients() of the template.
template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace sm90::backward;
  using namespace sm90;
  using Front = RowStatisticsConfig<Config>;
  using SharedMemory = backward::Shared<Front>;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  static_assert(sizeof(SharedMemory) <= Config::kStatisticsSharedBytes,
                "the host side and the template disagree on shared memory");
  SharedMemory& shared = *reinterpret_cast<SharedMemory*>(shared_bytes);
  const OneRowTile<Spec, Front, Params> row_tile(params);
  if (row_tile.empty()) return;
  if (threadIdx.x == 0) {
    prefetch_tensormap(params.q_map);
    prefetch_tensormap(params.dout_map);
    prefetch_tensormap(params.k_moving_map);
    prefetch_tensormap(params.v_moving_map);
    backward::init_barriers(shared);
  }
  __syncthreads();
  constexpr int kProducerWarp = Front::kConsumers * kWarpgroup / 32;
  const int warp = threadIdx.x / 32;
  if (warp >= kProducerWarp) {
    setmaxnreg_dec<Config::kStatisticsProducerRegisters>();
    if (warp == kProducerWarp) {
      backward::Producer<Spec, Front, Params>(shared, params).template run<Role::kRows>(row_tile);
    }
  } else {
    setmaxnreg_inc<Config::kStatisticsConsumerRegisters>();
    RowStatisticsConsumer<Spec, Front, Params>(shared, params).run();
  }
}
