// Attention backward on Hopper: a consumer warpgroup, which owns 64 lines of each tile.
//
// Per block: S and dP (wgmma, both operands in shared memory), P and dS under the mask, in registers, and the sums of
// the role (wgmma, P or dS as the register operand: the accumulator layout of S is the operand layout). For columns, S
// and dP come out transposed, and so are what the sums need.
#pragma once
#include "attention/bias.cuh"
#include "attention/sm90_backward/epilogue.cuh"
#include "attention/sm90_backward/products.cuh"
#include "common/regions.cuh"

namespace sm90::backward {

// Where a consumer is in the rings: it goes on there in its other role.
template <class Config>
struct Position {
  PipelineState<Config::kKeptStages> kept;
  PipelineState<Config::kStages> streamed;
};

template <Role kRole, class Spec, class Config, class Params>
class Consumer {
 public:
  __device__ __forceinline__ Consumer(Shared<Config>& shared, const Params& params, const Position<Config>& position)
      : shared_(shared),
        params_(params),
        warpgroup_(threadIdx.x / kWarpgroup),
        kept_(position.kept),
        pipeline_(position.streamed) {}

  // Works on the tiles of this role, up to the first that has another one.
  __device__ __forceinline__ Position<Config> run() {
    while (open_tile()) {
      if constexpr (kHasFirst) clear_sums(first_sums_);
      if constexpr (kHasSecond) clear_sums(second_sums_);
      if (tile().has_blocks) run_blocks();
      store();
      if (!Config::kSchedulePersistent) break;  // a block has one tile
      kept_.advance();
    }
    return {kept_, pipeline_};
  }

 private:
  static constexpr bool kColumns = kRole != Role::kRows;
  static constexpr bool kHasFirst = kRole != Role::kValues;                              // sums: dq or dk
  static constexpr bool kHasSecond = kRole == Role::kColumns || kRole == Role::kValues;  // dv
  static constexpr bool kWeighted = kColumns && Spec::kAttnScaleRows;  // streamed rows have factors of their own
  // The products of the next block are issued before the sums of this one, where registers hold both.
  static constexpr bool kOverlap = kHasSecond ? Config::kOverlapColumns : Config::kOverlapRows;
  static constexpr int kScores = Config::kBlockN / 2;       // fp32 accumulators of S a thread holds, and of dP
  static constexpr int kFirstSums = Spec::kAttnDim / 2;     // of dq or dk
  static constexpr int kSecondSums = Spec::kHiddenDim / 2;  // of dv

  __device__ __forceinline__ void release(u64& barrier) { release_warp<Config>(barrier); }

  // The descriptions stay in shared memory: there are no registers to spare for them.
  __device__ __forceinline__ const TileInfo& tile() const { return shared_.tile[kept_.stage()]; }
  __device__ __forceinline__ const BlockInfo& block(const PipelineState<Config::kStages>& state) const {
    return shared_.block[state.stage()];
  }

  // Waits for the next tile's description and its operands. False when it has another role.
  __device__ __forceinline__ bool open_tile() {
    mbarrier_wait(shared_address(&shared_.kept_full[kept_.stage()]), kept_.phase());
    return tile().role == kRole;
  }

  // The tile's blocks. No product is pending before and after.
  __device__ __forceinline__ void run_blocks() {
    while (true) {
      if (peek_block()) {
        issue_scores();
        wgmma_wait_group<0>();
        keep_scores_in_place();
        activate();
        take_block();
        round();
        run_consecutive();
      } else {
        take_block();
        release(shared_.streamed_empty[pipeline_.previous().stage()]);
      }
      if (last_) return;
    }
  }

  // Waits for the next block of the tile; whether this warpgroup's lines have anything to do with it.
  __device__ __forceinline__ bool peek_block() {
    mbarrier_wait(shared_address(&shared_.streamed_full[pipeline_.stage()]), pipeline_.phase());
    return block(pipeline_).flags & BlockInfo::may(warpgroup_);
  }

  // Steps over the peeked block. Its stage is kept until its sums are done: till then it is pending.
  __device__ __forceinline__ void take_block() {
    last_ = block(pipeline_).flags & BlockInfo::kLast;
    pipeline_.advance();
  }

  __device__ __forceinline__ void issue_scores() {
    const int stage = pipeline_.stage();
    if constexpr (!kTailWarp<Config>) {
      const int lines = tile().rows - block(pipeline_).line0;
      if (lines < Config::kBlockN) {
        zero_lines(shared_, stage, lines, threadIdx.x % kWarpgroup, kWarpgroup);
        fence_proxy_async();
        named_barrier_sync(kWithinWarpgroup, kWarpgroup);
      }
    }
    const u32 lines = warpgroup_ * kWarpgroupRows * kSwizzleBytes;
    const u32 kept_first = wgmma_operand(shared_address(shared_.kept_first[kept_.stage()]) + lines);
    const u32 kept_second = wgmma_operand(shared_address(shared_.kept_second[kept_.stage()]) + lines);
    const u32 streamed_first = wgmma_operand(shared_address(shared_.streamed_first[stage]));
    const u32 streamed_second = wgmma_operand(shared_address(shared_.streamed_second[stage]));
    wgmma_fence();
    ScoreProduct::issue(scores_, kept_first, streamed_first);
    if constexpr (kHasFirst) GradientProduct::issue(gradients_, kept_second, streamed_second);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void keep_scores_in_place() {
    wgmma_keep_in_place(scores_);
    if constexpr (kHasFirst) wgmma_keep_in_place(gradients_);
  }

  __device__ __forceinline__ void issue_sums(const PipelineState<Config::kStages>& pending) {
    constexpr u32 kTileBytes = Config::kBlockN * kSwizzleBytes;
    const u32 first = wgmma_operand(shared_address(shared_.streamed_first[pending.stage()]), kTileBytes);
    const u32 second = wgmma_operand(shared_address(shared_.streamed_second[pending.stage()]), kTileBytes);
    wgmma_fence();
    if constexpr (kHasFirst) FirstSum::issue(first_sums_, score_gradients_, first);
    if constexpr (kHasSecond) SecondSum::issue(second_sums_, weights_, second);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void keep_sums_in_place() {
    if constexpr (kHasFirst) wgmma_keep_in_place(first_sums_);
    if constexpr (kHasSecond) wgmma_keep_in_place(second_sums_);
  }

  // Accumulator i of a thread is at line (i & 2 ? 8 : 0) + lane / 4 of its warp's 16 lines of the tile and line 8 * (i
  // / 4) + 2 * (lane % 4) + (i & 1) of the block. P takes the place of S, and dS that of dP.
  __device__ __forceinline__ void activate_seen() {
    [[maybe_unused]] float2 factors;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      float y, dy;
      score_grad(scores_[i], params_.alpha, y, dy);
      if constexpr (kWeighted) weigh(i, factors, y, dy);
      scores_[i] = y;
      if constexpr (kHasFirst) gradients_[i] *= dy;
    }
  }

  __device__ __forceinline__ void activate_under_mask() {
    const int rows = tile().rows, targets = tile().targets;
    int kept = tile().line0 + warpgroup_ * kWarpgroupRows + thread_line(),
        streamed = block(pipeline_).line0 + threadIdx.x % 4 * 2;
    // What the mask derives from them is computed here, not before the products: the accumulators need the registers.
    asm volatile("" : "+r"(kept), "+r"(streamed));
    [[maybe_unused]] float2 factors;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const int kept_line = kept + (i & 2 ? 8 : 0), streamed_line = streamed + i / 4 * 8 + (i & 1);
      const int row = kColumns ? streamed_line : kept_line, column = kColumns ? kept_line : streamed_line;
      const bool valid = mask_valid(row, column, rows, targets) && (!kColumns || row < rows);
      float y, dy;
      score_grad(scores_[i], params_.alpha, y, dy);
      if constexpr (kWeighted) weigh(i, factors, y, dy);
      scores_[i] = valid ? y : 0.0f;
      if constexpr (kHasFirst) {
        const float gradient = gradients_[i] * dy;
        gradients_[i] = valid ? gradient : 0.0f;
      }
    }
  }

  // First of this thread's lines of the tile and of the block, within the sequence.
  __device__ __forceinline__ int thread_kept() const {
    return tile().line0 + warpgroup_ * kWarpgroupRows + thread_line();
  }
  __device__ __forceinline__ int thread_streamed() const {
    return block(pipeline_).line0 + static_cast<int>(threadIdx.x) % 4 * 2;
  }

  // With the factor of the row of accumulator i. `factors`: of the rows of four accumulators, between calls in order.
  __device__ __forceinline__ void weigh(int i, float2& factors, float& y, float& dy) const {
    if (i % 4 == 0) {
      factors = RowFactors<Params>(params_, tile().start, tile().rows).pair(thread_streamed() + i * 2);
    }
    const float factor = of_half(factors, i % 2);
    y *= factor;
    dy *= factor;
  }

  // Addresses are computed here, not kept in registers across blocks: the accumulators need them.
  __device__ __forceinline__ void add_bias() {
    if constexpr (Spec::kRabHeads > 0) {
      int sequence = tile().has_blocks - 1, kept = thread_kept(), streamed = thread_streamed();
      asm volatile("" : "+r"(sequence), "+r"(kept), "+r"(streamed));
      const HeadBias<Spec, Params> bias(params_, sequence, tile().head, tile().rows);
      if constexpr (kColumns) {
        bias.template add_transposed<kScores>(streamed, kept, scores_);
      } else {
        bias.template add_fragment<Config::kBlockN>(kept, block(pipeline_).line0, scores_);
      }
    }
  }

  __device__ __forceinline__ void activate() {
    add_bias();
    if (block(pipeline_).flags & BlockInfo::must(warpgroup_)) {
      activate_seen();
    } else {
      activate_under_mask();
    }
  }

  __device__ __forceinline__ void round() {
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) {
      if constexpr (kHasFirst) {
        score_gradients_[i] = pack_pair<Spec::kDtypeBf16>(gradients_[2 * i], gradients_[2 * i + 1]);
      }
      if constexpr (kHasSecond) weights_[i] = pack_pair<Spec::kDtypeBf16>(scores_[2 * i], scores_[2 * i + 1]);
    }
  }

  // With one block pending, goes on while the tile's very next block is to be multiplied, too; leaves nothing pending.
  // A warpgroup that waits for a later one with a block pending needs two stages: others may skip it, but give back
  // their stages without this one's doing.
  __device__ __forceinline__ void run_consecutive() {
    while (!last_ && peek_block()) {
      const PipelineState<Config::kStages> previous = pipeline_.previous();
      if constexpr (kOverlap) {
        issue_scores();
        issue_sums(previous);
        wgmma_wait_group<1>();
        keep_scores_in_place();
        activate();
        take_block();
        finish_sums(previous);
      } else {
        issue_sums(previous);
        finish_sums(previous);
        issue_scores();
        wgmma_wait_group<0>();
        keep_scores_in_place();
        activate();
        take_block();
      }
      round();
    }
    const PipelineState<Config::kStages> pending = pipeline_.previous();
    issue_sums(pending);
    finish_sums(pending);
  }

  __device__ __forceinline__ void finish_sums(const PipelineState<Config::kStages>& pending) {
    wgmma_wait_group<0>();
    keep_sums_in_place();
    release(shared_.streamed_empty[pending.stage()]);
  }

  __device__ __forceinline__ void store() {
    const int stage = kept_.stage();
    // All warps of the warpgroup are past the products that read the tile.
    named_barrier_sync(kWithinWarpgroup + warpgroup_, kWarpgroup);
    const int line = warpgroup_ * kWarpgroupRows + warp_line();
    const auto factors = this->factors();
    if constexpr (kHasFirst) {
      stage_lines<Spec::kAttnDim, Spec, Config>(first_sums_, factors, shared_.kept_first[stage], line);
    }
    if constexpr (kHasSecond) {
      stage_lines<Spec::kHiddenDim, Spec, Config>(second_sums_, factors, shared_.kept_second[stage], line);
    }
    fence_proxy_async();
    kept_ = shared_.place[stage];
    give_back_lines<kRole, Spec>(shared_, params_, stage, line);
  }

  // Of the sums of the thread's lines.
  __device__ __forceinline__ auto factors() const {
    if constexpr (kColumns) {
      return common_factor<Spec>(params_);
    } else {
      return thread_factors(row_factors<Spec>(params_, tile().start, tile().rows), thread_kept());
    }
  }

  Shared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
  PipelineState<Config::kKeptStages> kept_;
  PipelineState<Config::kStages> pipeline_;
  bool last_ = false;         // the block before pipeline_ is its tile's last
  float scores_[kScores];     // S, then P
  float gradients_[kScores];  // dP, then dS
  u32 weights_[kScores / 2];
  u32 score_gradients_[kScores / 2];
  float first_sums_[kFirstSums];
  float second_sums_[kSecondSums];
};

}  // namespace sm90::backward
