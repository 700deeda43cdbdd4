// Attention backward on Hopper, dS computed once: a consumer warpgroup, which owns 64 columns of each tile.
//
// Per block of 64 rows: S^T and dP^T (wgmma, both operands in shared memory), P and dS under the mask, in registers, dv
// += P^T dout and dk += dS^T q. dS goes through shared memory, and each warpgroup multiplies that of all columns of the
// tile by its share of the columns of k: a part of dq, which is added to dq_parts in global memory or, in order, may
// begin the sum there or end it. Where a block keeps sums in shared memory, it is multiplied on top of the one so far.
#pragma once
#include "attention/sm90_backward/epilogue.cuh"
#include "attention/sm90_backward/products.cuh"
#include "attention/sm90_backward_fused/dq_accum.cuh"
#include "attention/sm90_backward_fused/per_sequence.cuh"
#include "attention/sm90_backward_fused/scores.cuh"
#include "attention/sm90_backward_fused/shared.cuh"

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
  using KeptSum = backward::KeptSum<Spec, Config>;
  using Scores = BlockScores<Spec, Config, Params>;
  static constexpr int kRows = Scores::kRows;
  // A tile's first block has code of its own where no registers are left for a part beside S: instructions that do not
  // fit the cache cost more than a product.
  static constexpr bool kPeelFirst = Spec::kAttnDim + Spec::kHiddenDim > 192;
  static constexpr bool kFixed = kFixedOrder<Config>, kKeepsSums = Config::kKeptSums > 0;
  // What is loaded from global memory takes its time.
  static constexpr bool kBeginEarly = kFixed && !kKeepsSums;
  static constexpr int kBegins = 1, kEnds = 2;  // of the sums of a block of dq: this tile has the first part, the last
  static constexpr int kOrder = kBegins | kEnds;
  static constexpr int kNoRow = 1 << 30;  // past the end of every sequence: nothing is added
  static_assert(Config::kBlockN == kRows);

  __device__ __forceinline__ void release(u64& barrier) { release_warp<Config>(barrier); }
  __device__ __forceinline__ const TileInfo& tile() const { return shared_.tile[kept_.stage()]; }
  __device__ __forceinline__ const BlockInfo& block() const { return shared_.block[pipeline_.stage()]; }

  __device__ __forceinline__ bool open_tile() {
    mbarrier_wait(shared_address(&shared_.kept_full[kept_.stage()]), kept_.phase());
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
  // In a fixed order without kept sums, dS(i-1) is waited for before dk(i); with "ordered", for its semaphore, too.
  //
  // No product is pending before and after.
  __device__ __forceinline__ void run_blocks() {
    if constexpr (kPeelFirst) {
      work_on_block<true>();
    } else {
      // The part multiplied beside the first block belongs to none.
      clear_sums(part_);
      wgmma_wait_group<0>();
      wgmma_keep_in_place(part_);
      last_ = false;
    }
    while (!last_) work_on_block<false>();
    put_part();
    begin_part();
    issue_part();
    wgmma_wait_group<0>();
    wgmma_keep_in_place(part_);
    part_row_ = row_;
  }

  template <bool kFirst>
  __device__ __forceinline__ void work_on_block() {
    wait_for_block();
    if (sees_block()) {
      multiply<kFirst>();
    } else {
      stand_by<kFirst>();
    }
  }

  __device__ __forceinline__ void wait_for_block() {
    mbarrier_wait(shared_address(&shared_.streamed_full[pipeline_.stage()]), pipeline_.phase());
  }
  __device__ __forceinline__ bool sees_block() const { return block().flags & BlockInfo::may(warpgroup_); }

  template <bool kFirst>
  __device__ __forceinline__ void multiply() {
    issue_scores();
    if constexpr (!kFirst) put_part();
    wgmma_wait_group<0>();
    wgmma_keep_in_place(own_.scores);
    own_.activate(params_, {tile(), block(), warpgroup_});
    issue_gradients();
    issue_dv();
    wgmma_wait_group<1>();
    wgmma_keep_in_place(own_.gradients);
    own_.differentiate();
    if constexpr (kBeginEarly && !kFirst) {
      // Before dk; dv is done by now, and its operand's registers are of use.
      wgmma_wait_group<0>();
      wgmma_keep_in_place(dv_);
      begin_part();
    }
    issue_dk();
    if constexpr (!kBeginEarly && !kFirst) begin_part();
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
    for (int i = 0; i < Scores::kScores / 2; ++i) own_.score_gradients[i] = 0;
    if constexpr (!kFirst) {
      put_part();
      begin_part();
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
    row_ = block().line0 | order_of(block().flags);
    release(shared_.streamed_empty[pipeline_.stage()]);
    pipeline_.advance();
    if constexpr (!kFirst) {
      wgmma_wait_group<0>();
      wgmma_keep_in_place(part_);
    }
    announce();
  }

  // What row_ and part_row_ say of a block besides its first row, which is a multiple of kRows.
  static __device__ __forceinline__ int order_of(int flags) {
    return kFixed ? (flags & BlockInfo::kFirstPart ? kBegins : 0) | (flags & BlockInfo::kLastPart ? kEnds : 0) : 0;
  }

  // Of parts that others have begun, the last one.
  static __device__ __forceinline__ bool completes_sum(int row) { return (row & kOrder) == kEnds; }

  // Until dS of the block before is there, the other buffer free again and, with "ordered", the semaphore at our value;
  // then its part may be multiplied, on top of the sum so far where that is kept, or that it completes.
  __device__ __forceinline__ void begin_part() {
    const PipelineState<kExchangeBuffers> before = staged_.previous();
    mbarrier_wait(shared_address(&shared_.exchanged[before.stage()]), before.phase());
    if constexpr (kKeepsSums) {
      const int row = row_ & ~kOrder;
      if (KeptSum::has(row) && !(row_ & kBegins)) {
        KeptSum::load(shared_, row, part_);
        return;
      }
    }
    if constexpr (kFixed) {
      if (completes_sum(row_)) {
        Part::load(params_.dq_parts, tile(), row_ & ~kOrder, part_);
      } else {
        clear_sums(part_);
      }
    }
  }

  // The part that was multiplied last, if there is one.
  __device__ __forceinline__ void put_part() {
    if constexpr (kFixed) {
      const int row = part_row_ & ~kOrder;
      if (part_row_ & kEnds) {
        Part::round(params_, tile(), row, part_);
        return;
      }
      if constexpr (kKeepsSums) {
        if (KeptSum::has(row)) {
          KeptSum::store(shared_, row, part_);
          return;
        }
      }
      if (part_row_ & kBegins) {
        Part::store(params_.dq_parts, tile(), row, part_);
        return;
      }
    }
    Part::add(params_.dq_parts, tile(), part_row_, part_);
  }

  __device__ __forceinline__ u32 own_lines() const { return warpgroup_ * kWarpgroupRows * kSwizzleBytes; }

  __device__ __forceinline__ void issue_scores() {
    const u32 kept = wgmma_operand(shared_address(shared_.kept_first[kept_.stage()]) + own_lines());
    const u32 streamed = wgmma_operand(shared_address(shared_.streamed_first[pipeline_.stage()]));
    wgmma_fence();
    ScoreProduct::issue(own_.scores, kept, streamed);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void issue_gradients() {
    const u32 kept = wgmma_operand(shared_address(shared_.kept_second[kept_.stage()]) + own_lines());
    const u32 streamed = wgmma_operand(shared_address(shared_.streamed_second[pipeline_.stage()]));
    wgmma_fence();
    GradientProduct::issue(own_.gradients, kept, streamed);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void issue_dv() {
    const u32 dout = wgmma_operand(shared_address(shared_.streamed_second[pipeline_.stage()]), kRows * kSwizzleBytes);
    wgmma_fence();
    SecondSum::issue(dv_, own_.weights, dout);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void stage_exchange() {
    stage_fragment<kRows>(shared_address(shared_.exchange[staged_.stage()]) + own_lines() + warp_line() * kSwizzleBytes,
                          0, own_.score_gradients);
    fence_proxy_async();
  }

  // Once this warpgroup has read the other buffer, which others may then overwrite.
  __device__ __forceinline__ void announce() {
    release(shared_.exchanged[staged_.stage()]);
    staged_.advance();
  }

  __device__ __forceinline__ void issue_dk() {
    const u32 q = wgmma_operand(shared_address(shared_.streamed_first[pipeline_.stage()]), kRows * kSwizzleBytes);
    wgmma_fence();
    FirstSum::issue(dk_, own_.score_gradients, q);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void issue_part() {
    const int column = warpgroup_ * Part::kColumns;
    const u32 scores = wgmma_operand(shared_address(shared_.exchange[staged_.previous().stage()]));
    const u32 k =
        wgmma_operand(shared_address(shared_.kept_first[kept_.stage()]) +
                          column / kSwizzleColumns * Config::kBlockM * kSwizzleBytes + column % kSwizzleColumns * 2,
                      Config::kBlockM * kSwizzleBytes);
    wgmma_fence();
    PartProduct::issue(part_, scores, k);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void store() {
    const int stage = kept_.stage();
    // All warpgroups are past the products that read k.
    named_barrier_sync(kAllConsumers, Config::kConsumers * kWarpgroup);
    const int line = warpgroup_ * kWarpgroupRows + warp_line();
    const float factor = common_factor<Spec>(params_);
    stage_lines<Spec::kAttnDim, Spec, Config>(dk_, factor, shared_.kept_first[stage], line);
    stage_lines<Spec::kHiddenDim, Spec, Config>(dv_, factor, shared_.kept_second[stage], line);
    fence_proxy_async();
    put_part();  // not before: the fence waits for additions under way
    kept_ = shared_.place[stage];
    give_back_lines<Role::kColumns, Spec>(shared_, params_, stage, line);
  }

  FusedShared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
  PipelineState<Config::kKeptStages> kept_;
  PipelineState<Config::kStages> pipeline_;
  PipelineState<kExchangeBuffers> staged_;  // the buffer that the begun block's dS is in, or will be
  bool last_ = false;                       // the tile has no further block
  int row_ = 0;                             // first of the block before, and order_of it
  int part_row_ = 0;                        // of the block that part_ is of
  Scores own_;                              // of the begun block
  float part_[Part::kSums];
  float dk_[Spec::kAttnDim / 2];
  float dv_[Spec::kHiddenDim / 2];
};

}  // namespace sm90::backward
