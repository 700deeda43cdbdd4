// hstu_attention forward on Hopper: a consumer warpgroup, which owns 64 rows of each tile.
//
// Per KV tile: S = q k^T (wgmma, both operands in shared memory), P = score(S) under the mask, in registers, and
// O += P v (wgmma, P as the register operand). The product q k^T of the next KV tile is issued before P v of this one,
// and its activation runs while P v is still in the tensor cores: KV tiles are independent, but in heads with softmax,
// whose O is then multiplied by what a larger S makes of it.
#pragma once
#include "attention/dropout.cuh"  // where kDropout
#include "attention/fragment_mask.cuh"
#include "attention/operands/factors.cuh"
#include "attention/operands/pair.cuh"
#include "attention/pair.cuh"
#include "attention/sm90_forward/packed_consumer.cuh"
#include "attention/sm90_forward/shared_values.cuh"  // where kHeadCluster
#include "attention/sm90_forward/split_kv.cuh"
#include "attention/softmax.cuh"  // where kNumSoftmaxHeads
#include "common/fragment_store.cuh"
#include "common/ptx/tma.cuh"
#include "common/regions.cuh"

namespace sm90 {

template <class Spec, class Config, class Params>
class Consumer {
 public:
  __device__ __forceinline__ Consumer(Shared<Config>& shared, const Params& params)
#ifdef kHeadCluster
      : shared_(shared),
        params_(params),
        warpgroup_(threadIdx.x / kWarpgroup),
        values_(shared, threadIdx.x / kWarpgroup){}
#else
      : shared_(shared), params_(params), warpgroup_(threadIdx.x / kWarpgroup) {
  }
#endif

        __device__ __forceinline__ void run() {
    if (Config::kPingPong && warpgroup_ == Config::kConsumers - 1) warp_scheduler_barrier_arrive();
    while (true) {
      // No product is pending here.
      if (!in_tile_) {
        if (!open_tile()) return;
        if (!tile_.has_work()) {
          close_tile();
          continue;
        }
      }
      if (!peek_kv_tile()) {
        const bool last = kv_tile_.flags & MovingTileInfo::kLast;
        skip_kv_tile();
        if (last) close_tile();
        continue;
      }
      warp_scheduler_barrier_sync();
      issue_scores();
      warp_scheduler_barrier_arrive();
      load_bias();
#ifdef kDropout
      draw_dropout();
#endif
      wgmma_wait_group<0>();
      wgmma_keep_in_place(scores_);
      release_scores_operands();
      activate();
#ifdef kNumSoftmaxHeads
      keep_outputs();
#endif
      round_weights();
      run_overlapped();
    }
  }

 private:
  static constexpr int kScores = Config::kBlockN / 2;    // fp32 accumulators of S a thread holds
  static constexpr int kOutputs = Spec::kHiddenDim / 2;  // and of O

  __device__ __forceinline__ void release(u64& barrier) { release_warp<Config::kLanesArrive>(barrier); }

  // Ping-pong scheduling, once per KV tile: while one warpgroup activates, another's products run, and they do not
  // fall into step.
  __device__ __forceinline__ void warp_scheduler_barrier_sync() {
    if constexpr (Config::kPingPong) named_barrier_sync(kWarpSchedulerBarrier + warpgroup_, 2 * kWarpgroup);
  }
  __device__ __forceinline__ void warp_scheduler_barrier_arrive() {
    if constexpr (Config::kPingPong) {
      named_barrier_arrive(kWarpSchedulerBarrier + (warpgroup_ + 1) % Config::kConsumers, 2 * kWarpgroup);
    }
  }

  // Waits for the next tile's description and its q. False when there are no more tiles.
  __device__ __forceinline__ bool open_tile() {
    if (Config::kQueryStages == 1) release_stored();
    mbarrier_wait(shared_address(&shared_.q_full[query_.stage()]), query_.phase());
    release_stored();
    tile_ = shared_.tile[query_.stage()];
    if (tile_.done) return false;
    in_tile_ = true;
    started_ = false;
#ifdef kNumSoftmaxHeads
    softmax_[0] = softmax_[1] = OnlineSoftmax<Config>();
#endif
#ifdef kAttnFunc
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (tile_.has_work()) intervals_[half].load(tile_.row0 + thread_row() + 8 * half, tile_.rows, tile_.targets);
    }
#endif
    return true;
  }

  __device__ __forceinline__ void close_tile() {
    store();
    query_.advance();
    in_tile_ = false;
  }

  // Gives back the q buffer of the previous tile, from which its outputs are being stored.
  __device__ __forceinline__ void release_stored() {
    if (!storing_) return;
    if (threadIdx.x % 32 == 0) bulk_wait_sources_read();
    release(shared_.q_empty[query_.previous().stage()]);
    storing_ = false;
  }

  // Waits for the next KV tile of the tile; whether this warpgroup's rows may see it.
  __device__ __forceinline__ bool peek_kv_tile() {
    mbarrier_wait(shared_address(&shared_.k_full[pipeline_.stage()]), pipeline_.phase());
    kv_tile_ = shared_.moving_tile[pipeline_.stage()];
    return kv_tile_.flags & MovingTileInfo::visible(warpgroup_);
  }

  __device__ __forceinline__ void skip_kv_tile() {
    warp_scheduler_barrier_sync();
    warp_scheduler_barrier_arrive();
    release(shared_.k_empty[pipeline_.stage()]);
    mbarrier_wait(shared_address(&shared_.v_full[pipeline_.stage()]), pipeline_.phase());
    release(shared_.v_empty[pipeline_.stage()]);
    pipeline_.advance();
  }

  __device__ __forceinline__ void issue_scores() {
    const u32 q =
        wgmma_operand(shared_address(shared_.q[query_.stage()]) + warpgroup_ * kWarpgroupRows * kSwizzleBytes);
    const u32 k = wgmma_operand(shared_address(shared_.k[pipeline_.stage()]));
    wgmma_fence();
    QkProduct::issue(scores_, q, k);
    wgmma_commit_group();
  }

  // The KV tile's bias, which `use` is given with the thread's first row. Addresses are computed here, not kept in
  // registers across KV tiles: the accumulators need them.
  template <class Use>
  __device__ __forceinline__ void with_bias(const Use& use) const {
    int sequence = tile_.sequence(), row = tile_.row0 + thread_row();
    asm volatile("" : "+r"(sequence), "+r"(row));
    use(HeadBias<Spec, Params>(params_, sequence, tile_.head, tile_.rows), row);
  }

  // Loads the bias of the current KV tile, which takes its time as the product does.
  __device__ __forceinline__ void load_bias() {
    if constexpr (Config::kBiasAhead) {
      with_bias(
          [&](const auto& bias, int row) { bias.template load_fragment<Config::kBlockN>(row, kv_tile_.row0, bias_); });
    }
  }

  __device__ __forceinline__ void add_bias() {
    if constexpr (Config::kBiasAhead) {
#pragma unroll
      for (int i = 0; i < kScores / 2; ++i) {
        scores_[2 * i] += unpack_low<Spec::kDtypeBf16>(bias_[i]);
        scores_[2 * i + 1] += unpack_high<Spec::kDtypeBf16>(bias_[i]);
      }
    } else if constexpr (Spec::Bias::kHeads > 0) {
      with_bias(
          [&](const auto& bias, int row) { bias.template add_fragment<Config::kBlockN>(row, kv_tile_.row0, scores_); });
    }
  }

  // The product of the current KV tile is done: k may be overwritten. The KV tile becomes the pending one.
  __device__ __forceinline__ void release_scores_operands() {
    release(shared_.k_empty[pipeline_.stage()]);
    pending_last_ = kv_tile_.flags & MovingTileInfo::kLast;
    pending_rows_ = column_end() - kv_tile_.row0;
    pipeline_.advance();
  }

  // O += P v of the pending KV tile.
  __device__ __forceinline__ void issue_outputs(const PipelineState<Config::kStages>& pending) {
    mbarrier_wait(shared_address(&shared_.v_full[pending.stage()]), pending.phase());
    if constexpr (Config::kPackSequences) {
      clean_values<Spec>(shared_, packed_tile(), pending.stage(), pending_rows_);
    } else if constexpr (!kTailWarp<Config>) {
      if (pending_rows_ < Config::kBlockN) {
        zero_rows(shared_, pending.stage(), pending_rows_, threadIdx.x % kWarpgroup, kWarpgroup);
        fence_proxy_async();
        named_barrier_sync(kWithinWarpgroup, kWarpgroup);
      }
    }
    const u32 v = wgmma_operand(shared_address(shared_.v[pending.stage()]), Config::kBlockN * kSwizzleBytes);
    wgmma_fence();
    PvProduct::issue(outputs_, weights_, v, started_);
    wgmma_commit_group();
    started_ = true;
  }

  // Accumulator i of a thread is at row (i & 2 ? 8 : 0) + lane / 4 of its warp's 16 rows and column 8 * (i / 4) + 2 *
  // (lane % 4) + (i & 1). `row` and `column` are those of accumulator 0.
  __device__ __forceinline__ Pair pair_of(int i, int row, int column) const {
    const int down = i & 2 ? 8 : 0, right = i / 4 * 8 + (i & 1);
    return {row + down, column + right, tile_.rows, tile_.targets, tile_.head, tile_.start, down - right};
  }

  __device__ __forceinline__ void activate_scores() {
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const auto at = [=] {
        if constexpr (Config::kPackSequences) {
          return packed_pair_of(i, packed_row(i & 2 ? 8 : 0));
        } else {
          return pair_of(i, tile_.row0 + thread_row(), thread_column());
        }
      };
#ifdef kHeadCluster
      if (i % 4 == 0) load_values(i / 4);
      scores_[i] = score_of_value(scores_[i], value_of(i), at, params_);
#else
      scores_[i] = score(scores_[i], at, params_);
#endif
    }
  }

#ifdef kHeadCluster
  // Loads the values of accumulators [4 * group, 4 * group + 4).
  __device__ __forceinline__ void load_values(int group) { value_ = values_.get(group); }
  __device__ __forceinline__ float value_of(int i) const {
    const float values[4] = {value_.x, value_.y, value_.z, value_.w};
    return values[i % 4];
  }
#endif

  __device__ __forceinline__ void activate_scores_under_mask() {
    int row = tile_.row0 + thread_row();
    // Values that the mask derives from the row are computed here, not kept in registers across KV tiles: the
    // accumulators need them.
    asm volatile("" : "+r"(row));
    const int column = thread_column();
    const FragmentMask<kScores> mask([&](int half, int further) {
#ifdef kAttnFunc
      return intervals_[half].bits(row + 8 * half, column + further, tile_.rows, tile_.targets);
#else
      return mask_row_bits(row + 8 * half, column + further, tile_.rows, tile_.targets);
#endif
    });
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const auto at = [=] { return pair_of(i, row, column); };
#ifdef kHeadCluster
      if (i % 4 == 0) load_values(i / 4);
      const float y = score_of_value(scores_[i], value_of(i), at, params_);
#else
      const float y = score(scores_[i], at, params_);
#endif
      scores_[i] = mask.valid(i) ? y : 0.0f;
    }
  }

  // The same in a packed tile, where each row has the mask of its own sequence, and sees none of the others' columns.
  __device__ __forceinline__ void activate_packed_scores() {
    Pair pairs[2] = {packed_pair_of(0, packed_row(0)), packed_pair_of(2, packed_row(8))};
    // As above.
    asm volatile("" : "+r"(pairs[0].row), "+r"(pairs[0].col), "+r"(pairs[1].row), "+r"(pairs[1].col));
    const FragmentMask<kScores> mask([&](int half, int further) {
      const Pair& own = pairs[half];
      return mask_row_bits(own.row, own.col + further, own.n, own.t) & bits_from(-(own.col + further));
    });
#pragma unroll
    for (int i = 0; i < kScores; ++i) {
      const Pair& own = pairs[i & 2 ? 1 : 0];
      const auto at = [=] { return Pair{own.row, own.col + i / 4 * 8 + (i & 1), own.n, own.t, own.head, 0}; };
      const float y = score(scores_[i], at, params_);
      scores_[i] = mask.valid(i) ? y : 0.0f;
    }
  }

#ifdef kNumSoftmaxHeads
  // O of the KV tiles before this one is still in the tensor cores: keep_outputs() multiplies it.
  __device__ __forceinline__ void activate_by_softmax() {
    const float scale = softmax_scale(params_);
#pragma unroll
    for (float& x : scores_) x *= scale;
    if (!(kv_tile_.flags & MovingTileInfo::full(warpgroup_))) {
      int row = tile_.row0 + thread_row();
      asm volatile("" : "+r"(row));  // as above
      const int column = thread_column();
      const FragmentMask<kScores> mask([&](int half, int further) {
        return mask_row_bits(row + 8 * half, column + further, tile_.rows, tile_.targets);
      });
#pragma unroll
      for (int i = 0; i < kScores; ++i) scores_[i] = mask.valid(i) ? scores_[i] : negative_infinity();
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      kept_[half] = softmax_[half].weigh([&](const auto& what) {
#pragma unroll
        for (int i = 2 * half; i < kScores; i += 4) {
          what(scores_[i]);
          what(scores_[i + 1]);
        }
      });
    }
  }

  // O becomes relative to the largest S of now.
  __device__ __forceinline__ void keep_outputs() {
    if (!is_softmax_head<Spec>(tile_.head)) return;
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) outputs_[i] *= kept_[i & 2 ? 1 : 0];
  }

#endif
  __device__ __forceinline__ void activate() {
    // Few rows: whole warps have none.
    if (Config::kDelta && tile_.row0 + warpgroup_ * kWarpgroupRows + warp_row() >= tile_.rows) return;
    add_bias();
#ifdef kSoftmaxScore
    if (is_softmax_head<Spec>(tile_.head)) {
      activate_scores();
      return activate_by_softmax();
    }
#elifdef kNumSoftmaxHeads
    if (is_softmax_head<Spec>(tile_.head)) return activate_by_softmax();
#endif
#ifdef kHeadCluster
    values_.wait();
#endif
    if (kv_tile_.flags & MovingTileInfo::full(warpgroup_)) {
      activate_scores();
    } else if constexpr (Config::kPackSequences) {
      activate_packed_scores();
    } else {
      activate_scores_under_mask();
    }
#ifdef kHeadCluster
    values_.release();
#endif
  }

#ifdef kDropout
  // Draws for the current KV tile, while its product runs.
  __device__ __forceinline__ void draw_dropout() {
    const Dropout<Params> dropout(params_, tile_.start, tile_.head);
    kept_pairs_.draw(dropout, tile_.row0 + warpgroup_ * kWarpgroupRows + warp_row(), kv_tile_.row0);
  }

#endif
  // The accumulator layout of S is the register-operand layout of P.
  __device__ __forceinline__ void round_weights() {
#ifdef kDropout
#pragma unroll
    for (int i = 0; i < kScores; ++i) scores_[i] = kept_pairs_.kept(i) ? scores_[i] : 0.0f;
#endif
#pragma unroll
    for (int i = 0; i < kScores / 2; ++i) {
      weights_[i] = pack_pair<Spec::kDtypeBf16>(scores_[2 * i], scores_[2 * i + 1]);
    }
  }

  // The rule that keeps the pipeline alive: a warpgroup never waits for a later KV tile's v while a product is pending,
  // because the pending one holds the stage that v may need. It finishes the product before it skips a KV tile.
  //
  // With one KV tile pending, goes on while the tile's very next KV tile can be overlapped with it; returns with
  // nothing pending.
  __device__ __forceinline__ void run_overlapped() {
    while (!pending_last_ && peek_kv_tile()) {
      const PipelineState<Config::kStages> previous = pipeline_.previous();
      warp_scheduler_barrier_sync();
      issue_scores();
      issue_outputs(previous);
      warp_scheduler_barrier_arrive();
      load_bias();
#ifdef kDropout
      draw_dropout();
#endif
      wgmma_wait_group<1>();
      wgmma_keep_in_place(scores_);
      release_scores_operands();
      activate();
      wgmma_wait_group<0>();
      wgmma_keep_in_place(outputs_);
      release(shared_.v_empty[previous.stage()]);
#ifdef kNumSoftmaxHeads
      keep_outputs();
#endif
      round_weights();
    }
    finish();
    if (pending_last_) close_tile();
  }

  __device__ __forceinline__ void finish() {
    const PipelineState<Config::kStages> pending = pipeline_.previous();
    issue_outputs(pending);
    wgmma_wait_group<0>();
    wgmma_keep_in_place(outputs_);
    release(shared_.v_empty[pending.stage()]);
  }

  // First of this warp's 16 rows within the warpgroup's.
  __device__ __forceinline__ int warp_row() const { return threadIdx.x % kWarpgroup / 32 * kTailBoxRows; }

  // First of this thread's two rows within the tile; the other is 8 further on.
  __device__ __forceinline__ int thread_row() const {
    return warpgroup_ * kWarpgroupRows + warp_row() + threadIdx.x % 32 / 4;
  }

  // First of this thread's columns of the KV tile, within the sequence.
  __device__ __forceinline__ int thread_column() const { return kv_tile_.row0 + threadIdx.x % 4 * 2; }

  // Behind the last column that rows of the tile may see.
  __device__ __forceinline__ int column_end() const {
    if constexpr (Config::kPackSequences) {
      return packed_tile().moving_end;
    } else {
      return tile_.rows;
    }
  }

  __device__ __forceinline__ PackedTile<Config>& packed_tile() const {
    return static_cast<PackedShared<Config>&>(shared_).packed_tile[query_.stage()];
  }

  // The sequence of the thread's first row, or of the one 8 further on. Read where it is asked for, not kept in
  // registers across KV tiles: the accumulators need them.
  __device__ __forceinline__ PackedRow packed_row(int further) const {
    return packed_tile().rows[thread_row() + further];
  }

  __device__ __forceinline__ Pair packed_pair_of(int i, const PackedRow& of) const {
    return {tile_.row0 + thread_row() + (i & 2 ? 8 : 0) - of.start,
            thread_column() + i / 4 * 8 + (i & 1) - of.start,
            of.rows,
            of.targets,
            tile_.head,
            0};
  }

  __device__ __forceinline__ void store() {
    if constexpr (Config::kSplit) {
      if (cluster_blocks() > 1) {
        named_barrier_sync(kWithinWarpgroup, kWarpgroup);  // k and v are no longer read
        store_partial<Spec::kHiddenDim>(partials_address(shared_) + thread_row() * kPartialRowBytes<Spec::kHiddenDim>,
                                        outputs_, started_);
        release(shared_.q_empty[query_.stage()]);
        return;
      }
    }
    if constexpr (Config::kPackSequences) {
      const PackedTile<Config>& tile = packed_tile();
      if (tile.not_finite) restore_values<Spec>(params_, tile, tile_.row0, thread_row(), tile_.head, outputs_);
    }
    u32 words[kOutputs / 2];
#ifdef kDropoutSoftmax
    const auto given = thread_factors(row_factors<Spec>(params_, tile_.start, tile_.rows), tile_.row0 + thread_row());
    const float kept = kept_factor(params_);
    const float2 own = make_float2(softmax_[0].factor() * kept, softmax_[1].factor() * kept);
    const bool softmax = is_softmax_head<Spec>(tile_.head);
    const float2 factors = make_float2(softmax ? own.x : of_half(given, 0), softmax ? own.y : of_half(given, 1));
#elifdef kNumSoftmaxHeads
    const auto given = thread_factors(row_factors<Spec>(params_, tile_.start, tile_.rows), tile_.row0 + thread_row());
    const float2 own = make_float2(softmax_[0].factor(), softmax_[1].factor());
    const bool softmax = is_softmax_head<Spec>(tile_.head);
    const float2 factors = make_float2(softmax ? own.x : of_half(given, 0), softmax ? own.y : of_half(given, 1));
#else
    const auto factors = thread_factors(row_factors<Spec>(params_, tile_.start, tile_.rows), tile_.row0 + thread_row());
#endif
#pragma unroll
    for (int i = 0; i < kOutputs / 2; ++i) {
      const float factor = of_half(factors, i % 2);
      const u32 word = pack_pair<Spec::kDtypeBf16>(outputs_[2 * i] * factor, outputs_[2 * i + 1] * factor);
      // Rows that see no column, and rows of q before the sequence.
      const bool sees = started_ && (!Config::kDelta || tile_.row0 + thread_row() + i % 2 * 8 >= 0);
      words[i] = sees ? word : 0;
    }
    const int first = warpgroup_ * kWarpgroupRows + warp_row();
    if constexpr (kStoreOverQuery<Config>) {
      // All warps of the warpgroup are past the products that read q.
      named_barrier_sync(kWithinWarpgroup + warpgroup_, kWarpgroup);
      if (tile_.row0 + first + kTailBoxRows <= tile_.rows) {
        store_over_query(words, first);
      } else {
        store_rows(words);
      }
      storing_ = true;
    } else {
      store_rows(words);
      release(shared_.q_empty[query_.stage()]);
    }
  }

  // Row by row: the rows past the sequence's end belong to the next one.
  __device__ __forceinline__ void store_rows(const u32 (&words)[kOutputs / 2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile_.row0 + thread_row() + half * 8;
      u16* out = params_.out + (tile_.start + row) * params_.out_row_stride + tile_.head * params_.out_head_stride;
      store_fragment_row<Spec::kHiddenDim>(out, words, half, row < tile_.rows);
    }
  }

  // The copy engine stores all 16 rows of the warp, from where their q was, while the next tile is computed.
  __device__ __forceinline__ void store_over_query(const u32 (&words)[kOutputs / 2], int first) {
    constexpr int kTileBytes = Config::kBlockM * kSwizzleBytes;
    const u32 rows = shared_address(shared_.q[query_.stage()]) + first * kSwizzleBytes;
    stage_fragment<Spec::kHiddenDim>(rows, kTileBytes, words);
    fence_proxy_async();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
#pragma unroll
      for (int tile = 0; tile < Config::kPvTiles; ++tile) {
        store_bulk_tensor_3d(rows + tile * kTileBytes, params_.out_map, tile * kSwizzleColumns, tile_.head,
                             static_cast<int>(tile_.start) + tile_.row0 + first);
      }
      bulk_commit_group();
    }
  }

  Shared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
#ifdef kHeadCluster
  ValueReader<Config> values_;
  float4 value_;  // of four accumulators
#endif
  PipelineState<Config::kQueryStages> query_;
  PipelineState<Config::kStages> pipeline_;
  int pending_rows_ = 0;       // rows of the pending KV tile that belong to the sequence; may exceed the KV tile
  bool pending_last_ = false;  // it is its tile's last
  bool in_tile_ = false;       // tile_ is open: some of its KV tiles are still to come
  bool storing_ = false;       // the q buffer before query_ is not given back yet
  bool started_ = false;       // outputs_ holds a product of the tile
  TileInfo tile_;
  MovingTileInfo kv_tile_;
  float scores_[kScores];
  u32 bias_[Config::kBiasAhead ? kScores / 2 : 1];  // pairs of the KV tile's
  u32 weights_[kScores / 2];
  float outputs_[kOutputs];
#ifdef kAttnFunc
  KeptIntervals intervals_[2];  // of the thread's rows
#endif
#ifdef kDropout
  KeptPairs<kScores, false> kept_pairs_;  // of the KV tile whose product is under way
#endif
#ifdef kNumSoftmaxHeads
  OnlineSoftmax<Config> softmax_[2];  // of the thread's rows
  float kept_[2];                     // by what outputs_ are to be multiplied
#endif
};

}  // namespace sm90
