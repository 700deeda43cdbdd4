// hstu_attention forward on Hopper: the producer warps, which walk tiles and KV tiles and feed the pipeline, and
// the tail warp, which zeroes V rows past the end of a sequence.
#pragma once
#include "attention/operands/tile_bounds.cuh"  // where kAttnFunc
#include "attention/sm90_forward/tile_scheduler.cuh"
#include "common/ptx/tma.cuh"
#include "common/regions.cuh"

namespace sm90 {

// The mask as a tile of rows sees it, which walks KV tiles.
struct RowsView {
#ifdef kAttnFunc
  template <class Config>
  struct Bounds : RowTileBounds<Config::kConsumers, kWarpgroupRows> {
    __device__ __forceinline__ Bounds(const Sequence& sequence, int row0)
        : RowTileBounds<Config::kConsumers, kWarpgroupRows>(row0, sequence.rows, sequence.targets) {}

    static __device__ __forceinline__ bool may_see(int) { return true; }
  };
#else
  static __device__ __forceinline__ void range(int r0, int r1, const Sequence& sequence, int& begin, int& end) {
    mask_columns(r0, r1, sequence.rows, sequence.targets, begin, end);
  }
  static __device__ __forceinline__ void tile(int r0, int r1, int c0, int c1, const Sequence& sequence, bool& full,
                                              bool& visible) {
    mask_tile(r0, r1, c0, c1, sequence.rows, sequence.targets, full, visible);
  }
#endif
};

// Classifies a KV tile for a tile of rows: which warpgroups' rows see some or all of it. It may end past what the tile
// sees, at `column_end`.
#ifdef kAttnFunc
template <class Config, class Bounds>
__device__ __forceinline__ int mask_flags(const Bounds& bounds, int first_column, int column_end) {
  int flags = 0;
#pragma unroll 1  // producers have few registers
  for (int w = 0; w < Config::kConsumers; ++w) {
    bool full, visible;
    bounds.tile(w, first_column, first_column + Config::kBlockN - 1, full, visible);
    flags |= (visible ? MovingTileInfo::visible(w) : 0) | (full ? MovingTileInfo::full(w) : 0);
  }
  return first_column < column_end ? flags : 0;
}
template <class Config, class View>
__device__ __forceinline__ int mask_flags(const Sequence& sequence, int row0, int first_column, int column_end) {
  return mask_flags<Config>(typename View::template Bounds<Config>(sequence, row0), first_column, column_end);
}
#else
template <class Config, class View>
__device__ __forceinline__ int mask_flags(const Sequence& sequence, int row0, int first_column, int column_end) {
  int flags = 0;
#pragma unroll 1  // producers have few registers
  for (int w = 0; w < Config::kConsumers; ++w) {
    const int first_row = row0 + w * kWarpgroupRows;
    bool full = false, visible = false;
    if (first_row < sequence.rows && first_column < column_end) {
      View::tile(first_row, min(first_row + kWarpgroupRows, sequence.rows) - 1, first_column,
                 first_column + Config::kBlockN - 1, sequence, full, visible);
    }
    flags |= (visible ? MovingTileInfo::visible(w) : 0) | (full ? MovingTileInfo::full(w) : 0);
  }
  return flags;
}
#endif

template <class Config>
constexpr int kVisibleFlags = MovingTileInfo::visible(Config::kConsumers) - 1;

// A tile's moving tiles, in ascending order unless asked for otherwise. Used by one whole warp, all lanes in step: each
// lane classifies one KV tile, so that 32 KV tiles cost one evaluation of the mask. `Derived` has classify(), which
// looks at 32 KV tiles from first_row_ on, and at further ones where the tile has none of these.
template <class Config, class Derived>
class MovingTileWalk {
 public:
  __device__ __forceinline__ bool empty() const { return visible_ == 0; }

  // The first one, or the last one of the 32.
  template <bool kLast = false>
  __device__ __forceinline__ MovingTileInfo pop() {
    const int index = kLast ? 31 - __clz(visible_) : __ffs(visible_) - 1;
    MovingTileInfo tile = {first_row_ + index * Config::kBlockN, __shfl_sync(~0u, flags_, index)};
    visible_ &= kLast ? ~(1u << index) : visible_ - 1;
    if (visible_ == 0) {
      first_row_ += 32 * Config::kBlockN;
      static_cast<Derived*>(this)->classify();
    }
    if (visible_ == 0) tile.flags |= MovingTileInfo::kLast;
    return tile;
  }

 protected:
  int first_row_;    // first row of KV tile 0 of the bit masks
  u32 visible_ = 0;  // bit i: KV tile i, counted from first_row_, is still to come
  int flags_;        // MovingTileInfo::flags of the KV tile of this lane
};

// The KV tiles of a tile that some of its rows may see. With a View that turns the mask round, the Q tiles of a
// tile of columns.
template <class Config, class View = RowsView>
class VisibleTiles : public MovingTileWalk<Config, VisibleTiles<Config, View>> {
 public:
#ifdef kAttnFunc
  __device__ __forceinline__ VisibleTiles(const Sequence& sequence, int row0, int) : bounds_(sequence, row0) {
    bounds_.range(first_row_, column_end_);
#else
  __device__ __forceinline__ VisibleTiles(const Sequence& sequence, int row0, int row_end)
      : sequence_(sequence), row0_(row0) {
    View::range(row0, row_end - 1, sequence, first_row_, column_end_);
#endif
    first_row_ = first_kv_column<Config>(first_row_);
    if constexpr (Config::kSplit) take_split(static_cast<int>(cluster_rank()));
    classify();
  }

  // Classifies the KV tiles that end before column_end_.
  __device__ __forceinline__ void classify() {
    for (; first_row_ < column_end_; first_row_ += 32 * Config::kBlockN) {
      const int first_column = first_row_ + static_cast<int>(threadIdx.x % 32) * Config::kBlockN;
#ifdef kAttnFunc
      if (!bounds_.may_see(first_row_)) continue;
      flags_ = mask_flags<Config>(bounds_, first_column, column_end_);
#else
      flags_ = mask_flags<Config, View>(sequence_, row0_, first_column, column_end_);
#endif
      visible_ = __ballot_sync(~0u, flags_ & kVisibleFlags<Config>);
      if (visible_ != 0) return;
    }
  }

 private:
  using Walk = MovingTileWalk<Config, VisibleTiles>;
  using Walk::first_row_;
  using Walk::flags_;
  using Walk::visible_;

  // Takes those of the tile's KV tiles that one of the cluster's CTAs has: none where others have one each already.
  __device__ __forceinline__ void take_split(int rank) {
    const int tiles = ceil_div(column_end_ - first_row_, Config::kBlockN);
    const int splits = splits_of<Config>(first_row_, column_end_);
    if (rank >= splits) {
      column_end_ = first_row_;
      return;
    }
    column_end_ = min(column_end_, first_row_ + tiles * (rank + 1) / splits * Config::kBlockN);
    first_row_ += tiles * rank / splits * Config::kBlockN;
  }

#ifdef kAttnFunc
  typename View::template Bounds<Config> bounds_;
#else
  const Sequence& sequence_;
  const int row0_;
#endif
  int column_end_;
};

// Loads kRows rows of one head from `row` on, of which the first `rows` belong to the sequence. At a sequence's end
// only those are loaded, by tail boxes of kTailBoxRows: what follows in memory is of no use. By one lane.
template <int kTiles, int kRows>
__device__ __forceinline__ void load_operand(u32 destination, const TensorMap& map, const TensorMap& tail_map,
                                             u32 barrier, int head, int row, int rows) {
  if (rows >= kRows) {
    mbarrier_arrive_expect_tx(barrier, kTiles * kRows * kSwizzleBytes);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      cp_async_bulk_tensor_3d(destination + tile * kRows * kSwizzleBytes, map, barrier, tile * kSwizzleColumns, head,
                              row);
    }
  } else {
    mbarrier_arrive_expect_tx(barrier, kTiles * ceil_div(rows, kTailBoxRows) * kTailBoxRows * kSwizzleBytes);
#pragma unroll 1  // code that is seldom run should not drive other code out of the instruction cache
    for (int first = 0; first < rows; first += kTailBoxRows) {
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile) {
        cp_async_bulk_tensor_3d(destination + (tile * kRows + first) * kSwizzleBytes, tail_map, barrier,
                                tile * kSwizzleColumns, head, row + first);
      }
    }
  }
}

// Operands that a producer warp loads. Where there is a warpgroup of producers, one warp loads q and k and another one
// v: each walks the same list, and neither waits for the other's buffers. One warp that loads all is one KV tile
// further with k than with v, whose buffer is given back later. So it finds the next tile while it would wait, and
// loads that tile's q and first k while the consumer still multiplies by the last v.
enum class Loads { kAll, kQueriesAndKeys, kValues };

// A V tile to be loaded: where it begins, and how many rows from there on belong to the sequence, which may exceed it.
struct ValueTile {
  int head;
  int row;
  int rows;  // 0: there is none
};

template <Loads kLoads, class Spec, class Config, class Params>
class Producer {
 public:
  __device__ __forceinline__ Producer(Shared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), leader_(threadIdx.x % 32 == 0) {}

  __device__ __forceinline__ void run() {
    TileScheduler<Spec, Config, Params> schedule(shared_, params_);
    Tile tile;
    Sequence sequence;
    while (schedule.next(tile, sequence)) {
#ifdef kAttnFunc
      sequence.targets = intervals_of<Spec>(params_, sequence, tile.head);
#endif
      const int row0 = sequence.query_begin + tile.row_tile * Config::kBlockM;
      VisibleTiles<Config> kv_tiles(sequence, row0, min(row0 + Config::kBlockM, sequence.rows));
      // The tile's q may wait for all products of an earlier tile.
      load_pending_values();
      if (kQueriesAndKeys) load_query(tile, sequence, row0, !kv_tiles.empty());
      while (!kv_tiles.empty()) {
        const MovingTileInfo kv_tile = kv_tiles.pop();
        const int row = static_cast<int>(sequence.start) + kv_tile.row0;
        const int rows = sequence.rows - kv_tile.row0;
        if (kQueriesAndKeys) load_keys(kv_tile, tile.head, row, rows);
        load_pending_values();
        pipeline_.advance();
        if (kValues) pending_ = {tile.head, row, rows};
        if (!kQueriesAndKeys) load_pending_values();
      }
    }
    load_pending_values();
    finish();
  }

 private:
  static constexpr bool kQueriesAndKeys = kLoads != Loads::kValues;
  static constexpr bool kValues = kLoads != Loads::kQueriesAndKeys;

  __device__ __forceinline__ void load_query(const Tile& tile, const Sequence& sequence, int row0, bool has_work) {
    const u32 full = shared_address(&shared_.q_full[query_.stage()]);
    mbarrier_wait(shared_address(&shared_.q_empty[query_.stage()]), query_.phase() ^ 1);
    if (leader_) {
      shared_.tile[query_.stage()] = {
          sequence.query_start, row0, sequence.rows, sequence.targets, tile.head, has_work, 0};
      if constexpr (Spec::Bias::kHeads > 0) {
        if (has_work) shared_.tile[query_.stage()].set_sequence(tile.sequence);
      }
      if (has_work) {
        load_operand<Config::kQkTiles, Config::kBlockM>(
            shared_address(shared_.q[query_.stage()]), params_.q_map, params_.q_tail_map, full, tile.head,
            static_cast<int>(sequence.query_start) + row0, sequence.rows - row0);
      } else {
        mbarrier_arrive(full);
      }
    }
    __syncwarp();
    query_.advance();
  }

  // `rows`: how many from `row` on belong to the sequence; may exceed the KV tile.
  __device__ __forceinline__ void load_keys(const MovingTileInfo& kv_tile, int head, int row, int rows) {
    const int s = pipeline_.stage();
    mbarrier_wait(shared_address(&shared_.k_empty[s]), pipeline_.phase() ^ 1);
    if (leader_) {
      const u32 full = shared_address(&shared_.k_full[s]);
      shared_.moving_tile[s] = kv_tile;
      load_operand<Config::kQkTiles, Config::kBlockN>(shared_address(shared_.k[s]), params_.k_map, params_.k_tail_map,
                                                      full, head, row, rows);
    }
    __syncwarp();
  }

  // Loads the values of the KV tile before pipeline_.
  __device__ __forceinline__ void load_pending_values() {
    const auto [head, row, rows] = pending_;
    if (!kValues || rows == 0) return;
    pending_.rows = 0;
    const PipelineState<Config::kStages> pipeline = pipeline_.previous();
    const int s = pipeline.stage();
    // With one consumer, it zeroes the rows past the sequence's end itself.
    const bool tail = kTailWarp<Config> && rows < Config::kBlockN;
    mbarrier_wait(shared_address(&shared_.v_empty[s]), pipeline.phase() ^ 1);
    if (tail) {
      mbarrier_wait(shared_address(&shared_.tail_empty), tail_phase_ ^ 1);
      tail_phase_ ^= 1;
    }
    if (leader_) {
      const u32 full = tail ? shared_address(&shared_.tail_full) : shared_address(&shared_.v_full[s]);
      if (tail) shared_.tail = {s, rows};
      load_operand<Config::kPvTiles, Config::kBlockN>(shared_address(shared_.v[s]), params_.v_map, params_.v_tail_map,
                                                      full, head, row, rows);
    }
    __syncwarp();
  }

  // Tells the consumers, and the tail warp, that there is nothing more.
  __device__ __forceinline__ void finish() {
    if (kQueriesAndKeys) {
      mbarrier_wait(shared_address(&shared_.q_empty[query_.stage()]), query_.phase() ^ 1);
      if (leader_) {
        shared_.tile[query_.stage()].done = 1;
        mbarrier_arrive(shared_address(&shared_.q_full[query_.stage()]));
      }
    }
    if (kValues && kTailWarp<Config>) {
      mbarrier_wait(shared_address(&shared_.tail_empty), tail_phase_ ^ 1);
      if (leader_) {
        shared_.tail.stage = -1;
        mbarrier_arrive(shared_address(&shared_.tail_full));
      }
    }
  }

  Shared<Config>& shared_;
  const Params& params_;
  const bool leader_;
  PipelineState<Config::kQueryStages> query_;
  PipelineState<Config::kStages> pipeline_;
  ValueTile pending_ = {};
  u32 tail_phase_ = 0;
};

// Calls zero(stage, first row, lane, lanes) for what buffers hold past their sequence's end, as the producer announces
// it, and arrives at the buffer's barrier of `full`. One warp.
template <class Config, class Memory, class Zero>
__device__ __forceinline__ void follow_tails(Memory& shared, u64 (&full)[Config::kStages], const Zero& zero) {
  const int lane = threadIdx.x % 32;
  u32 phase = 0;
  while (true) {
    mbarrier_wait(shared_address(&shared.tail_full), phase);
    phase ^= 1;
    const TailInfo tail = shared.tail;
    if (tail.stage < 0) return;
    zero(tail.stage, tail.first_row, lane, 32);
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(shared_address(&full[tail.stage]));
    release_warp<Config::kLanesArrive>(shared.tail_empty);
  }
}

// Zeroes V rows past their sequence's end.
template <class Config>
__device__ void zero_tails(Shared<Config>& shared) {
  follow_tails<Config>(shared, shared.v_full, [&](auto... rows) { zero_rows(shared, rows...); });
}

}  // namespace sm90
