// Attention backward on Hopper, dS computed once: a consumer warpgroup, which owns 64 columns of each KV
// tile.
//
// Per Q tile of 64 rows: S^T and dP^T (wgmma, both operands in shared memory), P and dS under the mask, in registers,
// dv += P^T dout and dk += dS^T q. dS goes through shared memory, and each warpgroup multiplies that of all columns of
// the KV tile by its share of the columns of k: a partial of dq, which is added to dq_accum in global memory atomically
// or, in a fixed order, may begin the sum there or end it. Where a CTA has dq_accum in shared memory, it is multiplied
// on top of the one so far.
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
#ifdef kConsumerSites
    clear_sites();
#endif
    while (open_tile()) {
      clear_sums(dk_);
      clear_sums(dv_);
      row_ = partial_row_ = kNoRow;
      if (tile().has_work()) {
        zero_past_end();
        run_q_tiles();
      }
      store();
      stationary_.advance();
    }
#ifdef kConsumerSites
    store_sites();
#elifdef kSiteWarps
    wait_for_site_warps();
    if (threadIdx.x == 0) shared_.exchanged_tile[staged_.stage()].rows = ExchangedTile::kNoMore;
    announce();
#endif
  }

 private:
  using Partial = DqPartial<Spec, Config>;
  using SmemDqAccum = backward::SmemDqAccum<Spec, Config>;
  using Scores = TileScores<Spec, Config, Params>;
  static constexpr int kRows = Scores::kRows;
  // A KV tile's first Q tile has code of its own where no registers are left for a partial beside S: instructions that
  // do not fit the cache cost more than a product.
  static constexpr bool kPeelFirst = Spec::kAttnDim + Spec::kHiddenDim > 192;
  static constexpr bool kFixed = kFixedOrder<Config>, kUsesSmemAccum = Config::kSmemAccumTiles > 0;
  // Loads from global memory take their time.
  static constexpr bool kBeginEarly = kFixed && !kUsesSmemAccum;
  static constexpr int kBegins = 1,
                       kEnds = 2;  // of the sums of a Q tile of dq: this KV tile has the first partial, the last
  static constexpr int kOrder = kBegins | kEnds;
  static constexpr int kNoRow = 1 << 30;  // past the end of every sequence: nothing is added
  static_assert(Config::kBlockN == kRows);

  __device__ __forceinline__ void release(u64& barrier) { release_warp<Config::kLanesArrive>(barrier); }
  __device__ __forceinline__ const TileInfo& tile() const { return shared_.tile[stationary_.stage()]; }
  __device__ __forceinline__ const MovingTileInfo& q_tile() const { return shared_.moving_tile[pipeline_.stage()]; }

  __device__ __forceinline__ bool open_tile() {
    mbarrier_wait(shared_address(&shared_.stationary_full[stationary_.stage()]), stationary_.phase());
    return tile().role != Role::kNone;
  }

  // Columns past the end of the sequence have no dS, but what is there in k would be multiplied by it.
  __device__ __forceinline__ void zero_past_end() {
    const int columns = tile().rows - tile().row0;
    if (columns >= Config::kBlockM) return;
    constexpr int kThreads = Config::kConsumers * kWarpgroup;
    zero_operand_rows<Config::kQkTiles, Config::kBlockM>(shared_.stationary_first[stationary_.stage()], columns,
                                                         threadIdx.x, kThreads);
    zero_operand_rows<Config::kPvTiles, Config::kBlockM>(shared_.stationary_second[stationary_.stage()], columns,
                                                         threadIdx.x, kThreads);
    fence_proxy_async();
    named_barrier_sync(kAllConsumers, kThreads);
  }

  // The partial of dq of a Q tile is multiplied one Q tile later, so that warpgroups need not keep in step, and added
  // up once S of the next is on its way. For Q tile i, with waits as |:
  //
  //   issue S(i), add partial(i-2) | S(i): activate, issue dP(i) and dv(i) | dP(i): differentiate, issue dk(i)
  //   | dS(i-1) of all warpgroups: stage dS(i), issue partial(i-1) | all of it: announce dS(i)
  //
  // In a fixed order without sums in shared memory, dS(i-1) is waited for before dk(i); with "semaphore", for its
  // semaphore, too.
  //
  // No product is pending before and after.
  __device__ __forceinline__ void run_q_tiles() {
    if constexpr (kPeelFirst) {
      work_on_q_tile<true>();
    } else {
      // The partial multiplied beside the first Q tile belongs to none.
      clear_sums(partial_);
      wgmma_wait_group<0>();
      wgmma_keep_in_place(partial_);
      last_ = false;
    }
    while (!last_) work_on_q_tile<false>();
    put_partial();
    begin_partial();
    issue_dq();
    wgmma_wait_group<0>();
    wgmma_keep_in_place(partial_);
    partial_row_ = row_;
  }

  template <bool kFirst>
  __device__ __forceinline__ void work_on_q_tile() {
    wait_for_q_tile();
    if (sees_q_tile()) {
      multiply<kFirst>();
    } else {
      stand_by<kFirst>();
    }
  }

  __device__ __forceinline__ void wait_for_q_tile() {
    mbarrier_wait(shared_address(&shared_.moving_full[pipeline_.stage()]), pipeline_.phase());
  }
  __device__ __forceinline__ bool sees_q_tile() const { return q_tile().flags & MovingTileInfo::visible(warpgroup_); }

  template <bool kFirst>
  __device__ __forceinline__ void multiply() {
    issue_scores();
#ifdef kAttnFunc
    own_.look_ahead({tile(), q_tile(), warpgroup_});
#endif
    if constexpr (!kFirst) put_partial();
#ifdef kNumSoftmaxHeads
    own_.look_ahead({tile(), q_tile(), warpgroup_}, shared_address(shared_.log2_sums[pipeline_.stage()]));
#endif
#ifdef kDropout
    own_.draw_dropout(params_, {tile(), q_tile(), warpgroup_});
#endif
    wgmma_wait_group<0>();
    wgmma_keep_in_place(own_.scores);
#ifdef kNumSoftmaxHeads
    if (is_softmax_head<Spec>(tile().head)) {
      own_.activate_by_softmax(params_, {tile(), q_tile(), warpgroup_});
    } else {
      own_.activate(params_, {tile(), q_tile(), warpgroup_});
    }
#else
    own_.activate(params_, {tile(), q_tile(), warpgroup_});
#endif
#ifdef kDropout
    own_.drop_weights();
#endif
    issue_gradients();
    issue_dv();
    wgmma_wait_group<1>();
    wgmma_keep_in_place(own_.gradients);
#ifdef kDropoutSoftmax
    own_.drop_gradients(shared_address(shared_.means[pipeline_.stage()]));
#elifdef kDropout
    own_.drop_gradients();
#endif
#ifdef kConsumerSites
    own_.differentiate(params_, {tile(), q_tile(), warpgroup_}, sites_);
#else
    own_.differentiate();
#endif
    if constexpr (kBeginEarly && !kFirst) {
      // Before dk; dv is done by now, and its operand's registers are of use.
      wgmma_wait_group<0>();
      wgmma_keep_in_place(dv_);
      begin_partial();
    }
    issue_dk();
    if constexpr (!kBeginEarly && !kFirst) begin_partial();
    stage_exchange();
    if constexpr (!kFirst) issue_dq();
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
      put_partial();
      begin_partial();
    }
    stage_exchange();
    if constexpr (!kFirst) issue_dq();
    step<kFirst>();
  }

  // Gives the Q tile back; waits for the partial of the one before.
  template <bool kFirst>
  __device__ __forceinline__ void step() {
    last_ = q_tile().flags & MovingTileInfo::kLast;
    partial_row_ = row_;
    row_ = q_tile().row0 | order_of(q_tile().flags);
    release(shared_.moving_empty[pipeline_.stage()]);
    pipeline_.advance();
    if constexpr (!kFirst) {
      wgmma_wait_group<0>();
      wgmma_keep_in_place(partial_);
    }
    announce();
  }

  // State of a Q tile in row_ and partial_row_ besides its first row, which is a multiple of kRows.
  static __device__ __forceinline__ int order_of(int flags) {
    return kFixed ? (flags & MovingTileInfo::kFirstPartial ? kBegins : 0) |
                        (flags & MovingTileInfo::kLastPartial ? kEnds : 0)
                  : 0;
  }

  // Whether the partial is the last one of a sum that others have begun.
  static __device__ __forceinline__ bool completes_sum(int row) { return (row & kOrder) == kEnds; }

  // Until dS of the Q tile before is there, the other buffer free again and, with "semaphore", the semaphore at our
  // value; then its partial may be multiplied, on top of the sum so far where that is in shared memory, or that it
  // completes.
  __device__ __forceinline__ void begin_partial() {
    const PipelineState<kExchangeBuffers> before = staged_.previous();
    mbarrier_wait(shared_address(&shared_.exchanged[before.stage()]), before.phase());
    if constexpr (kUsesSmemAccum) {
      const int row = row_ & ~kOrder;
      if (SmemDqAccum::has(row) && !(row_ & kBegins)) {
        SmemDqAccum::load(shared_, row, partial_);
        return;
      }
    }
    if constexpr (kFixed) {
      if (completes_sum(row_)) {
        Partial::load(params_.dq_accum, tile(), row_ & ~kOrder, partial_);
      } else {
        clear_sums(partial_);
      }
    }
  }

  // The partial that was multiplied last, if there is one.
  __device__ __forceinline__ void put_partial() {
    if constexpr (kFixed) {
      const int row = partial_row_ & ~kOrder;
      if (partial_row_ & kEnds) {
        Partial::round(params_, tile(), row, partial_);
        return;
      }
      if constexpr (kUsesSmemAccum) {
        if (SmemDqAccum::has(row)) {
          SmemDqAccum::store(shared_, row, partial_);
          return;
        }
      }
      if (partial_row_ & kBegins) {
        Partial::store(params_.dq_accum, tile(), row, partial_);
        return;
      }
    }
    Partial::add(params_.dq_accum, tile(), partial_row_, partial_);
  }

  __device__ __forceinline__ u32 own_rows() const { return warpgroup_ * kWarpgroupRows * kSwizzleBytes; }

  __device__ __forceinline__ void issue_scores() {
    const u32 stationary = wgmma_operand(shared_address(shared_.stationary_first[stationary_.stage()]) + own_rows());
    const u32 moving = wgmma_operand(shared_address(shared_.moving_first[pipeline_.stage()]));
#ifdef kBiasInShared
    begin_transposed_with_bias<Spec>(shared_address(shared_.bias[pipeline_.stage()][warpgroup_]), warp_row(),
                                     own_.scores);
#endif
    wgmma_fence();
    ScoreProduct::issue(own_.scores, stationary, moving);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void issue_gradients() {
    const u32 stationary = wgmma_operand(shared_address(shared_.stationary_second[stationary_.stage()]) + own_rows());
    const u32 moving = wgmma_operand(shared_address(shared_.moving_second[pipeline_.stage()]));
#ifdef kNumSoftmaxHeads
    own_.begin_gradients(shared_address(shared_.means[pipeline_.stage()]));
#endif
    wgmma_fence();
    GradientProduct::issue(own_.gradients, stationary, moving);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void issue_dv() {
    const u32 dout = wgmma_operand(shared_address(shared_.moving_second[pipeline_.stage()]), kRows * kSwizzleBytes);
    wgmma_fence();
    SecondSum::issue(dv_, own_.weights, dout);
    wgmma_commit_group();
  }

#ifdef kConsumerSites
  // This warp's sums of all tiles.
  __device__ __forceinline__ float (&site_sums())[ScoreSites::kOthers] {
    return shared_.site_sums[threadIdx.x / 32];
  }

  __device__ __forceinline__ void clear_sites() {
    for (int i = threadIdx.x % 32; i < ScoreSites::kOthers; i += 32) site_sums()[i] = 0.0f;
    clear_sums(sites_);
    __syncwarp();
  }

  // Adds what the tile has to the elements of its head.
  __device__ __forceinline__ void add_sites() {
    int number = 0;
    ScoreSites::for_each_site([&](auto site) {
      using Site = decltype(site);
      float sum = sites_[number++];
#pragma unroll
      for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
      if (threadIdx.x % 32 == 0) site_sums()[Site::kFirst - ScoreSites::kTables + tile().head / Site::kGroup] += sum;
    });
    clear_sums(sites_);
  }

  // Stores the sums, times the factor that rows have in common: factors of rows are in dS.
  __device__ __forceinline__ void store_sites() {
    __syncwarp();
    const float factor = common_factor<Spec>(params_);
    const i64 warp = static_cast<i64>(blockIdx.x) * Config::kSiteWarps + threadIdx.x / 32;
    for (int i = threadIdx.x % 32; i < ScoreSites::kOthers; i += 32)
      params_.site_sums[warp * ScoreSites::kOthers + i] = factor * site_sums()[i];
    if (blockIdx.x == 0 && threadIdx.x == 0)
      *params_.site_blocks = static_cast<int>(gridDim.x) * Config::kSiteWarps;
  }
#elifdef kSiteWarps
  // Until they have read what was in the buffer.
  __device__ __forceinline__ void wait_for_site_warps() {
    mbarrier_wait(shared_address(&shared_.exchange_read[staged_.stage()]), staged_.phase() ^ 1);
  }
#endif

  __device__ __forceinline__ void stage_exchange() {
#ifdef kConsumerSites
    // Nobody else reads the buffer.
#elifdef kSiteWarps
    wait_for_site_warps();
    if (threadIdx.x == 0) {
      shared_.exchanged_tile[staged_.stage()] = {tile().start, q_tile().row0, tile().row0,
                                                 tile().rows,  tile().head,   tile().targets};
    }
#endif
    stage_fragment<kRows>(shared_address(shared_.exchange[staged_.stage()]) + own_rows() + warp_row() * kSwizzleBytes,
                          0, own_.score_gradients);
    fence_proxy_async();
  }

  // Once this warpgroup has read the other buffer, which others may then overwrite.
  __device__ __forceinline__ void announce() {
    release(shared_.exchanged[staged_.stage()]);
    staged_.advance();
  }

  __device__ __forceinline__ void issue_dk() {
    const u32 q = wgmma_operand(shared_address(shared_.moving_first[pipeline_.stage()]), kRows * kSwizzleBytes);
    wgmma_fence();
    FirstSum::issue(dk_, own_.score_gradients, q);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void issue_dq() {
    const int column = warpgroup_ * Partial::kColumns;
    const u32 scores = wgmma_operand(shared_address(shared_.exchange[staged_.previous().stage()]));
    const u32 k =
        wgmma_operand(shared_address(shared_.stationary_first[stationary_.stage()]) +
                          column / kSwizzleColumns * Config::kBlockM * kSwizzleBytes + column % kSwizzleColumns * 2,
                      Config::kBlockM * kSwizzleBytes);
    wgmma_fence();
    DqProduct::issue(partial_, scores, k);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void store() {
    const int stage = stationary_.stage();
#ifdef kConsumerSites
    add_sites();
#endif
    // All warpgroups are past the products that read k.
    named_barrier_sync(kAllConsumers, Config::kConsumers * kWarpgroup);
    const int tile_row = warpgroup_ * kWarpgroupRows + warp_row();
#ifdef kDropoutSoftmax
    const float factor =
        unless_softmax(is_softmax_head<Spec>(tile().head), common_factor<Spec>(params_), kept_factor(params_));
#elifdef kNumSoftmaxHeads
    const float factor = unless_softmax(is_softmax_head<Spec>(tile().head), common_factor<Spec>(params_));
#else
    const float factor = common_factor<Spec>(params_);
#endif
#ifdef kSiteWarps
    stage_rows<Spec::kAttnDim, Spec, Config>(dk_, factor * params_.alpha, shared_.stationary_first[stage], tile_row);
#else
    stage_rows<Spec::kAttnDim, Spec, Config>(dk_, factor, shared_.stationary_first[stage], tile_row);
#endif
    stage_rows<Spec::kHiddenDim, Spec, Config>(dv_, factor, shared_.stationary_second[stage], tile_row);
    fence_proxy_async();
    put_partial();  // not before: the fence waits for additions under way
    stationary_ = shared_.stationary_state[stage];
    release_rows<Role::kColumns, Spec>(shared_, params_, stage, tile_row);
  }

  FusedShared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
  PipelineState<Config::kStationaryStages> stationary_;
  PipelineState<Config::kStages> pipeline_;
  PipelineState<kExchangeBuffers> staged_;  // the buffer that the begun Q tile's dS is in, or will be
  bool last_ = false;                       // the tile has no further Q tile
  int row_ = 0;                             // first of the Q tile before, and order_of it
  int partial_row_ = 0;                     // of the Q tile that partial_ is of
  Scores own_;                              // of the begun Q tile
  float partial_[Partial::kSums];
#ifdef kConsumerSites
  float sites_[ScoreSites::kSites];  // of the tile, for this thread's pairs
#endif
  float dk_[Spec::kAttnDim / 2];
  float dv_[Spec::kHiddenDim / 2];
};

}  // namespace sm90::backward
