// Attention backward on Hopper, dS computed once: a consumer warpgroup, which owns 64 columns of each tile.
//
// Per block of 64 rows: S^T and dP^T (wgmma, both operands in shared memory), P and dS under the mask, in registers, dv
// += P^T dout and dk += dS^T q. dS goes through shared memory, and each warpgroup multiplies that of all columns of the
// tile by its share of the columns of k: a part of dq, which is added to dq_parts in global memory.
#pragma once
#include "common/regions.cuh"
#include "hstu_attention/bias.cuh"
#include "hstu_attention/sm90_backward_fused_parts.cuh"
#include "hstu_attention/sm90_backward_fused_shared.cuh"
#include "hstu_attention/sm90_backward_output.cuh"
#include "hstu_attention/sm90_backward_products.cuh"

namespace sm90::backward {

template <class Spec, class Config, class Params>
class FusedConsumer {
 public:
  __device__ __forceinline__ FusedConsumer(FusedShared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), warpgroup_(threadIdx.x / kWarpgroup) {}

  __device__ __forceinline__ void run() {
    while (open_tile()) {
      clear_sums(dk_);
      clear_sums(dv_);
      row_ = part_row_ = kNoRow;
      if (tile().has_blocks) {
        zero_past_end();
        run_blocks();
      }
      store();
      kept_.advance();
    }
  }

 private:
  using Part = DqPart<Spec, Config>;
  static constexpr int kRows = 64;           // of a block
  static constexpr int kScores = kRows / 2;  // fp32 accumulators of S a thread holds, and of dP
  static constexpr int kSumSteps = kRows / 16;
  static constexpr int kNoRow = 1 << 30;  // past the end of every sequence: nothing is added
  static constexpr int kPartSteps = Config::kBlockM / 16;
  static_assert(Config::kBlockN == kRows);

  __device__ __forceinline__ void release(u64& barrier) { release_warp<Config>(barrier); }
  __device__ __forceinline__ const TileInfo& tile() const { return shared_.tile[kept_.stage()]; }
  __device__ __forceinline__ const BlockInfo& block() const { return shared_.block[ring_.stage()]; }

  __device__ __forceinline__ bool open_tile() {
    mbarrier_wait(shared_address(&shared_.kept_full[kept_.stage()]), kept_.parity());
    return tile().role != Role::kNone;
  }

  // Columns past the end of the sequence have no dS, but what is in their place of k would be multiplied by it.
  __device__ __forceinline__ void zero_past_end() {
    const int columns = tile().rows - tile().line0;
    if (columns >= Config::kBlockM) return;
    constexpr int kThreads = Config::kConsumers * kWarpgroup;
    zero_operand_rows<Config::kQkTiles, Config::kBlockM>(shared_.kept_first[kept_.stage()], columns, threadIdx.x,
                                                         kThreads);
    zero_operand_rows<Config::kPvTiles, Config::kBlockM>(shared_.kept_second[kept_.stage()], columns, threadIdx.x,
                                                         kThreads);
    fence_proxy_async();
    named_barrier_sync(kAllConsumers, kThreads);
  }

  // The part of dq of a block is multiplied one block later, so that warpgroups need not keep in step, and added up
  // once S of the next is on its way. For block i, with waits as |:
  //
  //   issue S(i), add part(i-2) | S(i): activate, issue dP(i) and dv(i) | dP(i): differentiate, issue dk(i)
  //   | dS(i-1) of all warpgroups: stage dS(i), issue part(i-1) | all of it: announce dS(i)
  //
  // No product is pending before and after.
  __device__ __forceinline__ void run_blocks() {
    wait_for_block();
    if (sees_block()) {
      multiply<true>();
    } else {
      stand_by<true>();
    }
    while (!last_) {
      wait_for_block();
      if (sees_block()) {
        multiply<false>();
      } else {
        stand_by<false>();
      }
    }
    put_part();
    wait_for_exchange();
    issue_part();
    wgmma_wait_group<0>();
    wgmma_keep_in_place(part_);
    part_row_ = row_;
  }

  __device__ __forceinline__ void wait_for_block() {
    mbarrier_wait(shared_address(&shared_.streamed_full[ring_.stage()]), ring_.parity());
  }
  __device__ __forceinline__ bool sees_block() const { return block().flags & BlockInfo::may(warpgroup_); }

  template <bool kFirst>
  __device__ __forceinline__ void multiply() {
    issue_scores();
    if constexpr (!kFirst) put_part();
    wgmma_wait_group<0>();
    wgmma_keep_in_place(scores_);
    activate();
    issue_gradients();
    issue_dv();
    wgmma_wait_group<1>();
    wgmma_keep_in_place(gradients_);
    differentiate();
    issue_dk();
    if constexpr (!kFirst) wait_for_exchange();
    stage_exchange();
    if constexpr (!kFirst) issue_part();
    wgmma_wait_group<kFirst ? 0 : 1>();
    wgmma_keep_in_place(dk_);
    wgmma_keep_in_place(dv_);
    step<kFirst>();
  }

  // These rows see nothing of this warpgroup's columns, but of others'.
  template <bool kFirst>
  __device__ __forceinline__ void stand_by() {
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) score_gradients_[i] = 0;
    if constexpr (!kFirst) {
      put_part();
      wait_for_exchange();
    }
    stage_exchange();
    if constexpr (!kFirst) issue_part();
    step<kFirst>();
  }

  // Gives the block back; waits for the part of the one before.
  template <bool kFirst>
  __device__ __forceinline__ void step() {
    last_ = block().flags & BlockInfo::kLast;
    part_row_ = row_;
    row_ = block().column0;
    release(shared_.streamed_empty[ring_.stage()]);
    ring_.advance();
    if constexpr (!kFirst) {
      wgmma_wait_group<0>();
      wgmma_keep_in_place(part_);
    }
    announce();
  }

  // The part that was multiplied last, if there is one.
  __device__ __forceinline__ void put_part() { Part::add(params_.dq_parts, tile(), part_row_, part_); }

  __device__ __forceinline__ u32 own_lines() const { return warpgroup_ * kWarpgroupRows * kSwizzleBytes; }

  __device__ __forceinline__ void issue_scores() {
    const u32 kept = wgmma_operand(shared_address(shared_.kept_first[kept_.stage()]) + own_lines());
    const u32 streamed = wgmma_operand(shared_address(shared_.streamed_first[ring_.stage()]));
    wgmma_fence();
    issue_lines_product<Config, Spec::kAttnDim>(scores_, kept, streamed);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void issue_gradients() {
    const u32 kept = wgmma_operand(shared_address(shared_.kept_second[kept_.stage()]) + own_lines());
    const u32 streamed = wgmma_operand(shared_address(shared_.streamed_second[ring_.stage()]));
    wgmma_fence();
    issue_lines_product<Config, Spec::kHiddenDim>(gradients_, kept, streamed);
    wgmma_commit_group();
  }

  // Accumulator i of a thread is at column (i & 2 ? 8 : 0) + lane / 4 of its warp's 16 columns of the tile and row 8 *
  // (i / 4) + 2 * (lane % 4) + (i & 1) of the block. P is rounded, and the derivative takes the place of S.
  __device__ __forceinline__ void activate() {
    if constexpr (Config::kMaskFirst) look_at_mask();
    add_bias();
    [[maybe_unused]] float2 factors;  // of the rows of four accumulators
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      if constexpr (Spec::kAttnScaleRows) {
        if (i % 4 == 0) factors = row_factors_of(thread_row() + i * 2);
      }
      float y[2];
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float dy;
        score_grad(scores_[i + j], params_.alpha, y[j], dy);
        if constexpr (Spec::kAttnScaleRows) {
          const float factor = of_half(factors, j);
          y[j] *= factor;
          dy *= factor;
        }
        scores_[i + j] = dy;
      }
      probabilities_[i / 2] = pack_pair<Spec::kDtypeBf16>(y[0], y[1]);
    }
    if constexpr (!Config::kMaskFirst) look_at_mask();
    clear_invalid(probabilities_);
  }

  // Which pairs are valid. Those past the sequence's end may be either: operands are zero there.
  __device__ __forceinline__ void look_at_mask() {
    if (block().flags & BlockInfo::must(warpgroup_)) {
      valid_ = ~0u;
    } else {
      const int rows = tile().rows, targets = tile().targets;
      int column0 = tile().line0 + warpgroup_ * kWarpgroupRows + thread_line();
      int row0 = thread_row();
      asm volatile("" : "+r"(column0), "+r"(row0));
      valid_ = 0;
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        const int column = column0 + (i & 2 ? 8 : 0), row = row0 + i / 4 * 8 + (i & 1);
        valid_ |= (mask_valid(row, column, rows, targets) ? 1u : 0u) << i;
      }
    }
  }

  // First of this thread's rows of the block, within the sequence.
  __device__ __forceinline__ int thread_row() const { return block().column0 + static_cast<int>(threadIdx.x) % 4 * 2; }

  __device__ __forceinline__ float2 row_factors_of(int row) const {
    return RowFactors<Params>(params_, tile().start, tile().rows).pair(row);
  }

  __device__ __forceinline__ void add_bias() {
    if constexpr (Spec::kRabHeads > 0) {
      int sequence = tile().has_blocks - 1, row = thread_row();
      int column = tile().line0 + warpgroup_ * kWarpgroupRows + thread_line();
      // As in look_at_mask().
      asm volatile("" : "+r"(sequence), "+r"(row), "+r"(column));
      HeadBias<Spec, Params>(params_, sequence, tile().head, tile().rows)
          .template add_transposed<kScores>(row, column, scores_);
    }
  }

  // In rounded pairs.
  __device__ __forceinline__ void clear_invalid(u32 (&words)[kScores / 2]) {
    if (valid_ == ~0u) return;
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) {
      if (!(valid_ >> 2 * i & 1)) words[i] &= 0xffff0000u;
      if (!(valid_ >> 2 * i & 2)) words[i] &= 0xffffu;
    }
  }

  __device__ __forceinline__ void issue_dv() {
    const u32 dout = wgmma_operand(shared_address(shared_.streamed_second[ring_.stage()]), kRows * kSwizzleBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSumSteps; ++step) {
      const u32* words = probabilities_ + 4 * step;
      SecondSum::issue(dv_, words[0], words[1], words[2], words[3], wgmma_descriptor(dout, step * 16 * kSwizzleBytes),
                       true);
    }
    wgmma_commit_group();
  }

  __device__ __forceinline__ void differentiate() {
#pragma unroll
    for (int i = 0; i < kScores; i += 2) {
      score_gradients_[i / 2] =
          pack_pair<Spec::kDtypeBf16>(gradients_[i] * scores_[i], gradients_[i + 1] * scores_[i + 1]);
    }
    clear_invalid(score_gradients_);
  }

  __device__ __forceinline__ void stage_exchange() {
    stage_fragment<kRows>(shared_address(shared_.exchange[staged_.stage()]) + own_lines() + warp_line() * kSwizzleBytes,
                          0, score_gradients_);
    fence_proxy_async();
  }

  // Once this warpgroup has read the other buffer, which others may then overwrite.
  __device__ __forceinline__ void announce() {
    release(shared_.exchanged[staged_.stage()]);
    staged_.advance();
  }

  __device__ __forceinline__ void issue_dk() {
    const u32 q = wgmma_operand(shared_address(shared_.streamed_first[ring_.stage()]), kRows * kSwizzleBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSumSteps; ++step) {
      const u32* words = score_gradients_ + 4 * step;
      FirstSum::issue(dk_, words[0], words[1], words[2], words[3], wgmma_descriptor(q, step * 16 * kSwizzleBytes),
                      true);
    }
    wgmma_commit_group();
  }

  // Until dS of the block before is there, and the other buffer is free again.
  __device__ __forceinline__ void wait_for_exchange() {
    const Ring<kExchangeBuffers> before = staged_.previous();
    mbarrier_wait(shared_address(&shared_.exchanged[before.stage()]), before.parity());
  }

  __device__ __forceinline__ void issue_part() {
    const int column = warpgroup_ * Part::kColumns;
    const u32 scores = wgmma_operand(shared_address(shared_.exchange[staged_.previous().stage()]));
    const u32 k =
        wgmma_operand(shared_address(shared_.kept_first[kept_.stage()]) +
                          column / kSwizzleColumns * Config::kBlockM * kSwizzleBytes + column % kSwizzleColumns * 2,
                      Config::kBlockM * kSwizzleBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kPartSteps; ++step) {
      const u64 a = wgmma_descriptor(scores, step * 16 * kSwizzleBytes);
      const u64 b = wgmma_descriptor(k, step * 16 * kSwizzleBytes);
      if (step == 0) {
        PartProduct::begin(part_, a, b);
      } else {
        PartProduct::issue(part_, a, b, true);
      }
    }
    wgmma_commit_group();
  }

  __device__ __forceinline__ void store() {
    const int stage = kept_.stage();
    // All warpgroups are past the products that read k.
    named_barrier_sync(kAllConsumers, Config::kConsumers * kWarpgroup);
    TileOutput<Spec, Config, float> output(tile(), warpgroup_ * kWarpgroupRows + warp_line(),
                                           common_factor<Spec>(params_));
    output.template stage_or_store<Spec::kAttnDim>(dk_, shared_.kept_first[stage],
                                                   {params_.dk, params_.dk_row_stride, params_.dk_head_stride});
    output.template stage_or_store<Spec::kHiddenDim>(dv_, shared_.kept_second[stage],
                                                     {params_.dv, params_.dv_row_stride, params_.dv_head_stride});
    fence_proxy_async();
    put_part();  // not before: the fence waits for additions under way
    kept_ = shared_.place[stage];
    give_back_lines<Role::kColumns>(shared_, params_, stage, warpgroup_ * kWarpgroupRows + warp_line(), output.whole());
  }

  FusedShared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
  Ring<Config::kKeptStages> kept_;
  Ring<Config::kStages> ring_;
  Ring<kExchangeBuffers> staged_;  // the buffer that the begun block's dS is in, or will be
  bool last_ = false;              // the tile has no further block
  int row_ = 0;                    // first of the block before
  int part_row_ = 0;               // first of the block that part_ is of
  u32 valid_ = 0;                  // of the accumulators of S and dP, under the mask
  float scores_[kScores];          // S, then the derivative
  float gradients_[kScores];       // dP
  u32 probabilities_[kScores / 2];
  u32 score_gradients_[kScores / 2];
  float part_[Part::kSums];
  float dk_[Spec::kAttnDim / 2];
  float dv_[Spec::kHiddenDim / 2];
};

}  // namespace sm90::backward
