// Attention backward on Hopper: a consumer warpgroup, which owns 64 rows of each tile.
//
// Per moving tile: S and dP (wgmma, both operands in shared memory), P and dS under the mask, in registers, and the
// sums of the role (wgmma, P or dS as the register operand: the accumulator layout of S is the operand layout). For
// columns, S and dP come out transposed, and so are what the sums need.
#pragma once
#include "attention/dropout.cuh"  // where kDropout
#include "attention/fragment_mask.cuh"
#include "attention/operands/factors.cuh"
#include "attention/operands/pair.cuh"
#include "attention/pair.cuh"
#include "attention/sm90_backward/epilogue.cuh"
#include "attention/sm90_backward/products.cuh"
#include "attention/sm90_backward_twopass/packed.cuh"
#include "attention/softmax.cuh"  // where kNumSoftmaxHeads
#include "common/regions.cuh"

namespace sm90::backward {

// Where a consumer is in the pipelines: it goes on there in its other role.
template <class Config>
struct Position {
  PipelineState<Config::kStationaryStages> stationary;
  PipelineState<Config::kStages> moving;
};

template <Role kRole, class Spec, class Config, class Params>
class Consumer {
 public:
  __device__ __forceinline__ Consumer(Shared<Config>& shared, const Params& params, const Position<Config>& position)
      : shared_(shared),
        params_(params),
        warpgroup_(threadIdx.x / kWarpgroup),
        stationary_(position.stationary),
        pipeline_(position.moving) {}

  // Works on the tiles of this role, up to the first that has another one.
  __device__ __forceinline__ Position<Config> run() {
    while (open_tile()) {
      if constexpr (kHasFirst) clear_sums(first_sums_);
      if constexpr (kHasSecond) clear_sums(second_sums_);
      if (tile().has_work()) run_moving_tiles();
      store();
      if (!Config::kSchedulePersistent) break;  // a CTA has one tile
      stationary_.advance();
    }
    return {stationary_, pipeline_};
  }

 private:
  static constexpr bool kColumns = kRole != Role::kRows;
  static constexpr bool kHasFirst = kRole != Role::kValues;                              // sums: dq or dk
  static constexpr bool kHasSecond = kRole == Role::kColumns || kRole == Role::kValues;  // dv
  static constexpr bool kWeighted = kColumns && Spec::Factors::kOfRows;  // moving rows have factors of their own
  // The products of the next moving tile are issued before the sums of this one, where registers hold both.
  static constexpr bool kOverlap = kHasSecond ? Config::kOverlapColumns : Config::kOverlapRows;
  static constexpr int kScores = Config::kBlockN / 2;       // fp32 accumulators of S a thread holds, and of dP
  static constexpr int kFirstSums = Spec::kAttnDim / 2;     // of dq or dk
  static constexpr int kSecondSums = Spec::kHiddenDim / 2;  // of dv

  __device__ __forceinline__ void release(u64& barrier) { release_warp<Config::kLanesArrive>(barrier); }

  // The descriptions stay in shared memory: there are no registers to spare for them.
  __device__ __forceinline__ const TileInfo& tile() const { return shared_.tile[stationary_.stage()]; }
  __device__ __forceinline__ const MovingTileInfo& moving_tile(const PipelineState<Config::kStages>& state) const {
    return shared_.moving_tile[state.stage()];
  }

  // Waits for the next tile's description and its operands. False when it has another role.
  __device__ __forceinline__ bool open_tile() {
    mbarrier_wait(shared_address(&shared_.stationary_full[stationary_.stage()]), stationary_.phase());
    return tile().role == kRole;
  }

  // The tile's moving tiles. No product is pending before and after.
  __device__ __forceinline__ void run_moving_tiles() {
    while (true) {
      if (peek_moving()) {
        issue_scores();
#ifdef kDropout
        draw_dropout();
#endif
        wgmma_wait_group<0>();
        keep_scores_in_place();
        activate();
        take_moving();
        round();
        run_consecutive();
      } else {
        take_moving();
        release(shared_.moving_empty[pipeline_.previous().stage()]);
      }
      if (last_) return;
    }
  }

  // Waits for the next moving tile of the tile; whether this warpgroup's rows have anything to do with it.
  __device__ __forceinline__ bool peek_moving() {
    mbarrier_wait(shared_address(&shared_.moving_full[pipeline_.stage()]), pipeline_.phase());
    return moving_tile(pipeline_).flags & MovingTileInfo::visible(warpgroup_);
  }

  // Steps over the peeked moving tile. Its stage is held until its sums are done: till then it is pending.
  __device__ __forceinline__ void take_moving() {
    last_ = moving_tile(pipeline_).flags & MovingTileInfo::kLast;
    pipeline_.advance();
  }

  __device__ __forceinline__ void issue_scores() {
    const int stage = pipeline_.stage();
    if constexpr (!kTailWarp<Config>) {
      const int rows = moving_end() - moving_tile(pipeline_).row0;
      if (rows < Config::kBlockN) {
        zero_tail_rows(shared_, stage, rows, threadIdx.x % kWarpgroup, kWarpgroup);
        fence_proxy_async();
        named_barrier_sync(kWithinWarpgroup, kWarpgroup);
      }
    }
    const u32 own_rows = warpgroup_ * kWarpgroupRows * kSwizzleBytes;
    const u32 stationary_first =
        wgmma_operand(shared_address(shared_.stationary_first[stationary_.stage()]) + own_rows);
    const u32 stationary_second =
        wgmma_operand(shared_address(shared_.stationary_second[stationary_.stage()]) + own_rows);
    const u32 moving_first = wgmma_operand(shared_address(shared_.moving_first[stage]));
    const u32 moving_second = wgmma_operand(shared_address(shared_.moving_second[stage]));
    wgmma_fence();
    ScoreProduct::issue(scores_, stationary_first, moving_first);
    if constexpr (kHasFirst) GradientProduct::issue(gradients_, stationary_second, moving_second);
    wgmma_commit_group();
#ifdef kAttnFunc
    look_ahead();
#endif
  }

  __device__ __forceinline__ void keep_scores_in_place() {
    wgmma_keep_in_place(scores_);
    if constexpr (kHasFirst) wgmma_keep_in_place(gradients_);
  }

  __device__ __forceinline__ void issue_sums(const PipelineState<Config::kStages>& pending) {
    if constexpr (Config::kPackSequences) {
      clean_moving<kHasFirst, kHasSecond, Spec>(shared_, packed_tile(), pending.stage());
    }
    constexpr u32 kTileBytes = Config::kBlockN * kSwizzleBytes;
    const u32 first = wgmma_operand(shared_address(shared_.moving_first[pending.stage()]), kTileBytes);
    const u32 second = wgmma_operand(shared_address(shared_.moving_second[pending.stage()]), kTileBytes);
    wgmma_fence();
    if constexpr (kHasFirst) FirstSum::issue(first_sums_, score_gradients_, first);
    if constexpr (kHasSecond) SecondSum::issue(second_sums_, weights_, second);
    wgmma_commit_group();
  }

  __device__ __forceinline__ void keep_sums_in_place() {
    if constexpr (kHasFirst) wgmma_keep_in_place(first_sums_);
    if constexpr (kHasSecond) wgmma_keep_in_place(second_sums_);
  }

  // Accumulator i of a thread is at row (i & 2 ? 8 : 0) + lane / 4 of its warp's 16 rows of the tile and row 8 * (i
  // / 4) + 2 * (lane % 4) + (i & 1) of the moving tile. `stationary` and `moving` are those of accumulator 0.
  __device__ __forceinline__ Pair pair_of(int i, int stationary, int moving) const {
    const int own = stationary + (i & 2 ? 8 : 0), other = moving + i / 4 * 8 + (i & 1);
    if constexpr (Config::kPackSequences) {
      const PackedRow& of = packed_row(i & 2 ? 8 : 0);
      const int row = (kColumns ? other : own) - of.start, column = (kColumns ? own : other) - of.start;
      return {row, column, of.rows, of.targets, tile().head, 0};
    }
    return {kColumns ? other : own, kColumns ? own : other, tile().rows, tile().targets, tile().head, tile().start};
  }

  // P takes the place of S, and dS that of dP.
  __device__ __forceinline__ void activate_seen() {
    [[maybe_unused]] float2 factors;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const auto at = [=] { return pair_of(i, thread_stationary(), thread_moving()); };
      float y, dy;
      score_grad(scores_[i], at, params_, y, dy);
      if constexpr (kWeighted) weigh(i, factors, y, dy);
      scores_[i] = y;
      if constexpr (kHasFirst) gradients_[i] *= dy;
    }
  }

  // Of 32 rows of moving tiles from `moving` on, those that have to do with the row `stationary` of the tile.
#ifdef kSequenceCounts
  static __device__ __forceinline__ u32 seen_bits(int stationary, int moving, int rows, SequenceCounts targets) {
#elifdef kAttnFunc
  static __device__ __forceinline__ u32 seen_bits(int stationary, int moving, int rows, const RowIntervals& targets) {
#else
  static __device__ __forceinline__ u32 seen_bits(int stationary, int moving, int rows, int targets) {
#endif
    if constexpr (kColumns) return mask_column_bits(stationary, moving, rows, targets) & ~bits_from(rows - moving);
    return mask_row_bits(stationary, moving, rows, targets);
  }

#ifdef kAttnFunc
  // Reads the intervals that the moving tile's pairs need, while its products run.
  __device__ __forceinline__ void look_ahead() {
    if (moving_tile(pipeline_).flags & MovingTileInfo::full(warpgroup_)) return;
    const int rows = tile().rows;
    const RowIntervals targets = tile().targets;
    if constexpr (kColumns) {
      const int first = tile().row0 + warpgroup_ * kWarpgroupRows + warp_row();
      mask_ = FragmentMask<kScores>(ColumnBits<Config::kBlockN>(moving_tile(pipeline_).row0, first, rows, targets));
    } else {
      mask_ = FragmentMask<kScores>([&](int half, int further) {
        return mask_row_bits(thread_stationary() + 8 * half, thread_moving() + further, rows, targets);
      });
    }
  }

#endif
  __device__ __forceinline__ void activate_under_mask() {
#ifdef kSequenceCounts
    const int rows = tile().rows;
    const SequenceCounts targets = tile().targets;
#elifdef kAttnFunc
    const int rows = tile().rows;
    const RowIntervals targets = tile().targets;
#else
    const int rows = tile().rows, targets = tile().targets;
#endif
    int stationary = tile().row0 + warpgroup_ * kWarpgroupRows + thread_row(),
        moving = moving_tile(pipeline_).row0 + threadIdx.x % 4 * 2;
    // What the mask derives from them is computed here, not before the products: the accumulators need the registers.
    asm volatile("" : "+r"(stationary), "+r"(moving));
#ifdef kAttnFunc
    const FragmentMask<kScores>& mask = mask_;
#else
    const FragmentMask<kScores> mask(
        [&](int half, int further) { return seen_bits(stationary + 8 * half, moving + further, rows, targets); });
#endif
    [[maybe_unused]] float2 factors;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const bool valid = mask.valid(i);
      const auto at = [=] { return pair_of(i, stationary, moving); };
      float y, dy;
      score_grad(scores_[i], at, params_, y, dy);
      if constexpr (kWeighted) weigh(i, factors, y, dy);
      scores_[i] = valid ? y : 0.0f;
      if constexpr (kHasFirst) {
        const float gradient = gradients_[i] * dy;
        gradients_[i] = valid ? gradient : 0.0f;
      }
    }
  }

  // In a packed tile each row has the mask of its own sequence, and nothing to do with the others' rows.
  __device__ __forceinline__ void activate_packed() {
    const PackedRow rows[2] = {packed_row(0), packed_row(8)};
    int own[2], other[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      own[half] = thread_stationary() + 8 * half - rows[half].start;
      other[half] = thread_moving() - rows[half].start;
      // As above.
      asm volatile("" : "+r"(own[half]), "+r"(other[half]));
    }
    const FragmentMask<kScores> mask([&](int half, int further) {
      const int first = other[half] + further;
      return seen_bits(own[half], first, rows[half].rows, rows[half].targets) & bits_from(-first);
    });
    [[maybe_unused]] float2 factors;
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
#ifdef kSequenceCounts
      const int half = i & 2 ? 1 : 0, n = rows[half].rows;
      const SequenceCounts t = rows[half].targets;
#elifdef kAttnFunc
      const int half = i & 2 ? 1 : 0, n = rows[half].rows;
      const RowIntervals t = rows[half].targets;
#else
      const int half = i & 2 ? 1 : 0, n = rows[half].rows, t = rows[half].targets;
#endif
      const int stationary_row = own[half], moving_row = other[half] + i / 4 * 8 + (i & 1);
      const int row = kColumns ? moving_row : stationary_row, column = kColumns ? stationary_row : moving_row;
      const bool valid = mask.valid(i);
      const auto at = [=] { return Pair{row, column, n, t, tile().head, 0}; };
      float y, dy;
      score_grad(scores_[i], at, params_, y, dy);
      if constexpr (kWeighted) weigh(i, factors, y, dy);
      scores_[i] = valid ? y : 0.0f;
      if constexpr (kHasFirst) {
        const float gradient = gradients_[i] * dy;
        gradients_[i] = valid ? gradient : 0.0f;
      }
    }
  }

  __device__ __forceinline__ PackedTile<Config>& packed_tile() const {
    return static_cast<PackedShared<Config>&>(shared_).packed_tile[stationary_.stage()];
  }

  // The sequence of the thread's first row of the tile, or of the one 8 further on.
  __device__ __forceinline__ const PackedRow& packed_row(int further) const {
    return packed_tile().rows[thread_row() + further];
  }

  // Behind the last row that moving tiles have for the tile.
  __device__ __forceinline__ int moving_end() const {
    if constexpr (Config::kPackSequences) {
      return packed_tile().moving_end;
    } else {
      return tile().rows;
    }
  }

  // First of this thread's rows of the tile and of the moving tile, within the sequence.
  __device__ __forceinline__ int thread_stationary() const {
    return tile().row0 + warpgroup_ * kWarpgroupRows + thread_row();
  }
  __device__ __forceinline__ int thread_moving() const {
    return moving_tile(pipeline_).row0 + static_cast<int>(threadIdx.x) % 4 * 2;
  }

  // With the factor of the row of accumulator i. `factors`: of the rows of four accumulators, between calls in order.
  __device__ __forceinline__ void weigh(int i, float2& factors, float& y, float& dy) const {
    if (i % 4 == 0) {
      factors = RowFactors<Spec, Params>(params_, tile().start, tile().rows).pair(thread_moving() + i * 2);
    }
    const float factor = of_half(factors, i % 2);
    y *= factor;
    dy *= factor;
  }

  // Addresses are computed here, not kept in registers across moving tiles: the accumulators need them.
  __device__ __forceinline__ void add_bias() {
    if constexpr (Spec::Bias::kHeads > 0) {
      int sequence = tile().sequence(), stationary = thread_stationary(), moving = thread_moving();
      asm volatile("" : "+r"(sequence), "+r"(stationary), "+r"(moving));
      const HeadBias<Spec, Params> bias(params_, sequence, tile().head, tile().rows);
      if constexpr (kColumns) {
        bias.template add_transposed<kScores>(moving, stationary, scores_);
      } else {
        bias.template add_fragment<Config::kBlockN>(stationary, moving_tile(pipeline_).row0, scores_);
      }
    }
  }

#ifdef kSoftmaxScore
  // The same of a head with softmax, of which another kernel has left what is known of each row.
  __device__ __forceinline__ void activate_by_softmax() {
    int stationary = thread_stationary(), moving = thread_moving();
    asm volatile("" : "+r"(stationary), "+r"(moving));  // as above
    FragmentMask<kScores> mask;
    if (!(moving_tile(pipeline_).flags & MovingTileInfo::full(warpgroup_))) {
      mask = FragmentMask<kScores>([&](int half, int further) {
        return seen_bits(stationary + 8 * half, moving + further, tile().rows, tile().targets);
      });
    }
    const SoftmaxRows<Spec, Params> rows(params_, tile().start, tile().rows, tile().head);
    RowStatistics known[2];
    if constexpr (!kColumns) {
      known[0] = rows.of(stationary);
      known[1] = rows.of(stationary + 8);
    }
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      if constexpr (kColumns) {
        if (i % 4 == 0) {
          known[0] = rows.of(moving + 2 * i);
          known[1] = rows.of(moving + 2 * i + 1);
        }
      }
      const bool valid = mask.valid(i);
      float weight, gradient = 0.0f;
      if constexpr (kHasFirst) gradient = gradients_[i];
      const auto at = [=] { return pair_of(i, stationary, moving); };
      softmax_gradient<Config>(scores_[i], known[kColumns ? i & 1 : i >> 1 & 1], at, params_, weight, gradient);
      scores_[i] = valid ? weight : 0.0f;
      if constexpr (kHasFirst) gradients_[i] = valid ? gradient : 0.0f;
    }
  }

#elifdef kNumSoftmaxHeads
  // The same of a head with softmax, of which another kernel has left what is known of each row.
  __device__ __forceinline__ void activate_by_softmax() {
    int stationary = thread_stationary(), moving = thread_moving();
    asm volatile("" : "+r"(stationary), "+r"(moving));  // as above
    FragmentMask<kScores> mask;
    if (!(moving_tile(pipeline_).flags & MovingTileInfo::full(warpgroup_))) {
      mask = FragmentMask<kScores>([&](int half, int further) {
        return seen_bits(stationary + 8 * half, moving + further, tile().rows, tile().targets);
      });
    }
    const SoftmaxRows<Spec, Params> rows(params_, tile().start, tile().rows, tile().head);
    RowStatistics known[2];
    if constexpr (!kColumns) {
      known[0] = rows.of(stationary);
      known[1] = rows.of(stationary + 8);
    }
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      if constexpr (kColumns) {
        if (i % 4 == 0) {
          known[0] = rows.of(moving + 2 * i);
          known[1] = rows.of(moving + 2 * i + 1);
        }
      }
      const bool valid = mask.valid(i);
      float weight, gradient = 0.0f;
      if constexpr (kHasFirst) gradient = gradients_[i];
      softmax_gradient<Config>(scores_[i], known[kColumns ? i & 1 : i >> 1 & 1], params_, weight, gradient);
      scores_[i] = valid ? weight : 0.0f;
      if constexpr (kHasFirst) gradients_[i] = valid ? gradient : 0.0f;
    }
  }

#endif
#ifdef kDropout
  // Draws for the moving tile whose products run.
  __device__ __forceinline__ void draw_dropout() {
    const Dropout<Params> dropout(params_, tile().start, tile().head);
    kept_pairs_.draw(dropout, tile().row0 + warpgroup_ * kWarpgroupRows + warp_row(), moving_tile(pipeline_).row0);
  }

#endif
  __device__ __forceinline__ void activate() {
#ifdef kDropout
    if constexpr (kHasFirst) {
#pragma unroll
      for (int i = 0; i < kScores; ++i) gradients_[i] = kept_pairs_.kept(i) ? gradients_[i] : 0.0f;
    }
#endif
    add_bias();
#ifdef kNumSoftmaxHeads
    if (is_softmax_head<Spec>(tile().head)) return activate_by_softmax();
#endif
    if (moving_tile(pipeline_).flags & MovingTileInfo::full(warpgroup_)) {
      activate_seen();
    } else if constexpr (Config::kPackSequences) {
      activate_packed();
    } else {
      activate_under_mask();
    }
  }

  __device__ __forceinline__ void round() {
#ifdef kDropout
    if constexpr (kHasSecond) {
#pragma unroll
      for (int i = 0; i < kScores; ++i) scores_[i] = kept_pairs_.kept(i) ? scores_[i] : 0.0f;
    }
#endif
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) {
      if constexpr (kHasFirst) {
        score_gradients_[i] = pack_pair<Spec::kDtypeBf16>(gradients_[2 * i], gradients_[2 * i + 1]);
      }
      if constexpr (kHasSecond) weights_[i] = pack_pair<Spec::kDtypeBf16>(scores_[2 * i], scores_[2 * i + 1]);
    }
  }

  // With one moving tile pending, goes on while the tile's very next moving tile is to be multiplied, too; leaves
  // nothing pending. A warpgroup that waits for a later one with a moving tile pending needs two stages: others may
  // skip it, but give back their stages without this one's doing.
  __device__ __forceinline__ void run_consecutive() {
    while (!last_ && peek_moving()) {
      const PipelineState<Config::kStages> previous = pipeline_.previous();
      if constexpr (kOverlap) {
        issue_scores();
        issue_sums(previous);
#ifdef kDropout
        draw_dropout();
#endif
        wgmma_wait_group<1>();
        keep_scores_in_place();
        activate();
        take_moving();
        finish_sums(previous);
      } else {
        issue_sums(previous);
        finish_sums(previous);
        issue_scores();
#ifdef kDropout
        draw_dropout();
#endif
        wgmma_wait_group<0>();
        keep_scores_in_place();
        activate();
        take_moving();
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
    release(shared_.moving_empty[pending.stage()]);
  }

  __device__ __forceinline__ void restore_sums() {
    const PackedTile<Config>& packed = packed_tile();
    if (!packed.not_finite) return;
    const int row0 = tile().row0, head = tile().head;
    if constexpr (kRole == Role::kRows) {
      restore_moving<kRole, Spec>(packed, row0, thread_row(), params_.k + head * params_.k_head_stride,
                                  params_.k_row_stride, first_sums_);
    } else if constexpr (kHasFirst) {
      restore_moving<kRole, Spec>(packed, row0, thread_row(), params_.q + head * params_.q_head_stride,
                                  params_.q_row_stride, first_sums_);
    }
    if constexpr (kHasSecond) {
      restore_moving<kRole, Spec>(packed, row0, thread_row(), params_.dout + head * params_.dout_head_stride,
                                  params_.dout_row_stride, second_sums_);
    }
  }

  __device__ __forceinline__ void store() {
    const int stage = stationary_.stage();
    if constexpr (Config::kPackSequences) restore_sums();
    // All warps of the warpgroup are past the products that read the tile.
    named_barrier_sync(kWithinWarpgroup + warpgroup_, kWarpgroup);
    const int tile_row = warpgroup_ * kWarpgroupRows + warp_row();
#ifdef kDropoutSoftmax
    const auto factors = unless_softmax(is_softmax_head<Spec>(tile().head), this->factors(), kept_factor(params_));
#elifdef kNumSoftmaxHeads
    const auto factors = unless_softmax(is_softmax_head<Spec>(tile().head), this->factors());
#else
    const auto factors = this->factors();
#endif
    if constexpr (kHasFirst) {
      stage_rows<Spec::kAttnDim, Spec, Config>(first_sums_, factors, shared_.stationary_first[stage], tile_row);
    }
    if constexpr (kHasSecond) {
      stage_rows<Spec::kHiddenDim, Spec, Config>(second_sums_, factors, shared_.stationary_second[stage], tile_row);
    }
    fence_proxy_async();
    stationary_ = shared_.stationary_state[stage];
    release_rows<kRole, Spec>(shared_, params_, stage, tile_row);
  }

  // Of the sums of the thread's rows.
  __device__ __forceinline__ auto factors() const {
    if constexpr (kColumns) {
      return common_factor<Spec>(params_);
    } else {
      return thread_factors(row_factors<Spec>(params_, tile().start, tile().rows), thread_stationary());
    }
  }

  Shared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
  PipelineState<Config::kStationaryStages> stationary_;
  PipelineState<Config::kStages> pipeline_;
  bool last_ = false;         // the moving tile before pipeline_ is its tile's last
  float scores_[kScores];     // S, then P
  float gradients_[kScores];  // dP, then dS
  u32 weights_[kScores / 2];
  u32 score_gradients_[kScores / 2];
  float first_sums_[kFirstSums];
  float second_sums_[kSecondSums];
#ifdef kDropout
  KeptPairs<kScores, kColumns> kept_pairs_;  // of the moving tile whose products are under way
#endif
#ifdef kAttnFunc
  FragmentMask<kScores> mask_;  // of the moving tile whose products are under way, unless all is seen
#endif
};

}  // namespace sm90::backward
