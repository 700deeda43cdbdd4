// Attention backward on Hopper: the producer warp, which walks stationary and moving tiles and feeds the pipeline, and
// the tail warp, which zeroes what moving tiles hold past the end of a sequence.
#pragma once
#include "attention/operands/interval_bounds.cuh"  // where kAttnFunc
#include "attention/sm90_backward/accumulation_order.cuh"
#include "attention/sm90_backward/tile_scheduler.cuh"
#include "common/ptx/tma.cuh"
#include "common/regions.cuh"

namespace sm90::backward {

// As in forward, but for columns past the sequence's end: what is loaded there is zero, whatever its score.
struct RowsView : sm90::RowsView {
#ifdef kAttnFunc
  template <class Config>
  struct Bounds : sm90::RowsView::Bounds<Config> {
    __device__ __forceinline__ Bounds(const Sequence& sequence, int row0)
        : sm90::RowsView::Bounds<Config>(sequence, row0), last_column_(sequence.rows - 1) {}

    __device__ __forceinline__ void tile(int warpgroup, int c0, int c1, bool& full, bool& visible) const {
      sm90::RowsView::Bounds<Config>::tile(warpgroup, c0, min(c1, last_column_), full, visible);
    }

   private:
    const int last_column_;
  };
#else
  static __device__ __forceinline__ void tile(int r0, int r1, int c0, int c1, const Sequence& sequence, bool& full,
                                              bool& visible) {
    sm90::RowsView::tile(r0, r1, c0, min(c1, sequence.rows - 1), sequence, full, visible);
  }
#endif
};

// The mask as a tile of columns sees it, which walks Q tiles.
struct ColumnsView {
#ifdef kAttnFunc
  // Stands in place of range() and tile(): each lane has a Q tile of its own, whose bounds are in memory.
  template <class Config>
  class Bounds {
   public:
    __device__ __forceinline__ Bounds(const Sequence& sequence, int column0) : sequence_(sequence), column0_(column0) {}

    __device__ __forceinline__ void range(int& begin, int& end) const {
      begin = 0;
      end = sequence_.rows;
    }
    __device__ __forceinline__ void tile(int warpgroup, int r0, int, bool& full, bool& visible) const {
      const int first = column0_ + warpgroup * kWarpgroupRows;
      full = visible = false;
      if (r0 >= sequence_.rows || first >= sequence_.rows) return;
      const IntervalBounds* const bounds = q_tile_bounds<Config>(sequence_, r0);
      classify_by_bounds(
          first, min(first + kWarpgroupRows, sequence_.rows) - 1, [&](int i) { return bounds[i]; }, full, visible);
    }

    __device__ __forceinline__ bool may_see(int first_row) { return seen_.some(sequence_, column0_, first_row); }

   private:
    const Sequence& sequence_;
    const int column0_;
    SeenQTiles<Config> seen_;
  };

#endif
  static __device__ __forceinline__ void range(int c0, int c1, const Sequence& sequence, int& begin, int& end) {
    mask_rows(c0, c1, sequence.rows, sequence.targets, begin, end);
  }
  static __device__ __forceinline__ void tile(int c0, int c1, int r0, int r1, const Sequence& sequence, bool& full,
                                              bool& visible) {
    mask_tile(r0, min(r1, sequence.rows - 1), c0, c1, sequence.rows, sequence.targets, full, visible);
#ifdef RowScoreProduct
    // Consumers look at each pair where the sequence ends within a warpgroup's columns.
    full = full && c1 - c0 == kWarpgroupRows - 1;
#endif
  }
};

template <class Config, Role kRole, bool kFixed = kFixedOrder<Config>>
struct MovingTilesOf {
  using type = VisibleTiles<Config, ColumnsView>;
};
template <class Config>
struct MovingTilesOf<Config, Role::kRows, false> {
  using type = VisibleTiles<Config, RowsView>;
};
template <class Config>
struct MovingTilesOf<Config, Role::kColumns, true> {
  using type = FixedOrderTiles<Config, ColumnsView>;
};

// `Memory`: Shared<Config>, or what is derived of it.
template <class Spec, class Config, class Params, class Memory = Shared<Config>>
class Producer {
 public:
  __device__ __forceinline__ Producer(Memory& shared, const Params& params)
      : shared_(shared), params_(params), leader_(threadIdx.x % 32 == 0) {}

  template <Role kRole, class TileScheduler>
  __device__ __forceinline__ void run(TileScheduler schedule) {
    Tile tile;
    Sequence sequence;
    while (schedule.next(tile, sequence)) {
#ifdef kAttnFunc
      sequence.targets = intervals_of<Spec>(params_, sequence, tile.head);
      const int group = tile.head / (Spec::kHeads / Spec::kAttnFuncHeads);
      sequence.bounds = bounds_of<Spec, Config>(params_, sequence, tile.sequence, group, 0);
      sequence.groups = group_bounds_of<Spec, Config>(params_, sequence, tile.sequence, group, 0);
#endif
      const int first = tile.index * Config::kBlockM;
      typename MovingTilesOf<Config, kRole>::type moving_tiles(sequence, first,
                                                               min(first + Config::kBlockM, sequence.rows));
      load_tile<kRole>(tile, sequence, first, !moving_tiles.empty());
      while (!moving_tiles.empty()) {
        u32 semaphore_value = 0;
        if constexpr (Config::kScheduleSemaphore) semaphore_value = moving_tiles.semaphore_value();
        const MovingTileInfo moving_tile = moving_tiles.pop();
        if constexpr (kFixedOrder<Config>) {
          if (moving_tiles.empty()) schedule.prepare();
        }
        load_moving<kRole>(moving_tile, semaphore_value, tile.head, sequence);
      }
    }
  }

  // Tells the consumers, and the tail warp, that there is nothing more.
  __device__ __forceinline__ void finish() {
#ifdef kQTileWarp
    const int s = moving_.stage();
    mbarrier_wait(shared_address(&shared_.moving_empty[s]), moving_.phase() ^ 1);
    if (leader_) {
      shared_.followed_tile[s].rows = 0;
      mbarrier_arrive(shared_address(&shared_.q_tile_asked[s]));
    }
#endif
    mbarrier_wait(shared_address(&shared_.stationary_empty[stationary_.stage()]), stationary_.phase() ^ 1);
    if (leader_) {
      shared_.tile[stationary_.stage()].role = Role::kNone;
      arrive_for_pair(shared_.stationary_full[stationary_.stage()]);
    }
    if constexpr (kTailWarp<Config>) {
      wait_for_tail_warp();
      if (leader_) {
        shared_.tail.stage = -1;
        arrive_for_pair(shared_.tail_full);
      }
    }
  }

 protected:
  template <Role kRole>
  __device__ __forceinline__ void load_tile(const Tile& tile, const Sequence& sequence, int first, bool has_work) {
    const int s = stationary_.stage();
#ifdef kBiasInShared
    sequence_ = tile.sequence;
    column0_ = first;
#endif
    mbarrier_wait(shared_address(&shared_.stationary_empty[s]), stationary_.phase() ^ 1);
    if (leader_) {
      shared_.stationary_state[s] = stationary_;
      shared_.tile[s] = {sequence.start, first, sequence.rows, sequence.targets, tile.head, has_work, kRole};
      if constexpr (kKeepSequence<Spec, Config>) {
        if (has_work) shared_.tile[s].set_sequence(tile.sequence);
      }
      if (has_work) {
        const u32 full = shared_address(&shared_.stationary_full[s]);
        const int row = static_cast<int>(sequence.start) + first, rows = sequence.rows - first;
        const u32 stationary_first = shared_address(shared_.stationary_first[s]),
                  stationary_second = shared_address(shared_.stationary_second[s]);
        if constexpr (kRole == Role::kRows) {
          load_pair<Config::kBlockM>(stationary_first, params_.q_map, params_.q_tail_map, stationary_second,
                                     params_.dout_map, params_.dout_tail_map, full, tile.head, row, rows);
        } else {
          load_pair<Config::kBlockM>(stationary_first, params_.k_map, params_.k_tail_map, stationary_second,
                                     params_.v_map, params_.v_tail_map, full, tile.head, row, rows);
        }
      } else {
        arrive_for_pair(shared_.stationary_full[s]);
      }
    }
    __syncwarp();
    stationary_.advance();
  }

  template <Role kRole>
  __device__ __forceinline__ void load_moving(const MovingTileInfo& moving_tile, [[maybe_unused]] u32 semaphore_value,
                                              int head, const Sequence& sequence) {
    const int s = moving_.stage();
    const int row = static_cast<int>(sequence.start) + moving_tile.row0, rows = sequence.rows - moving_tile.row0;
    // Without a tail warp, the consumer zeroes the rows past the sequence's end itself.
    const bool tail = kTailWarp<Config> && rows < Config::kBlockN;
    mbarrier_wait(shared_address(&shared_.moving_empty[s]), moving_.phase() ^ 1);
    if (tail) wait_for_tail_warp();
    if (leader_) {
      const u32 full = shared_address(tail ? &shared_.tail_full : &shared_.moving_full[s]);
      shared_.moving_tile[s] = moving_tile;
      if constexpr (Config::kScheduleSemaphore) shared_.semaphore_value[s] = semaphore_value;
      if (tail) {
        // In place of one load; the tail warp arrives for the other, after it has zeroed both.
        shared_.tail = {s, rows};
        mbarrier_arrive(shared_address(&shared_.moving_full[s]));
      }
      const u32 first = shared_address(shared_.moving_first[s]), second = shared_address(shared_.moving_second[s]);
      if constexpr (kRole == Role::kRows) {
        load_pair<Config::kBlockN>(first, params_.k_moving_map, params_.k_tail_map, second, params_.v_moving_map,
                                   params_.v_tail_map, full, head, row, rows);
      } else {
        load_pair<Config::kBlockN>(first, params_.q_moving_map, params_.q_tail_map, second, params_.dout_moving_map,
                                   params_.dout_tail_map, full, head, row, rows);
      }
#ifdef kQTileWarp
      if constexpr (kRole == Role::kColumns) {
        follow(shared_.followed_tile[s], row, rows, head, moving_tile.row0);
        mbarrier_arrive(shared_address(&shared_.q_tile_asked[s]));
      }
#endif
    }
    __syncwarp();
    moving_.advance();
  }

#ifdef kBiasInShared
  __device__ __forceinline__ void follow(FollowedTile& tile, int row, int rows, int head, int row0) const {
    tile = {row, rows, head, sequence_, row0, column0_};
  }
#elifdef kQTileWarp
  static __device__ __forceinline__ void follow(FollowedTile& tile, int row, int rows, int head, int) {
    tile = {row, rows, head};
  }
#endif
  // Boxes of kRows rows, or tail boxes of those that the sequence has.
  template <int kRows>
  __device__ __forceinline__ void load_pair(u32 first, const TensorMap& first_map, const TensorMap& first_pieces,
                                            u32 second, const TensorMap& second_map, const TensorMap& second_pieces,
                                            u32 full, int head, int row, int rows) {
    load_operand<Config::kQkTiles, kRows>(first, first_map, first_pieces, full, head, row, rows);
    load_operand<Config::kPvTiles, kRows>(second, second_map, second_pieces, full, head, row, rows);
  }

  // Till it has taken the last tail.
  __device__ __forceinline__ void wait_for_tail_warp() {
    mbarrier_wait(shared_address(&shared_.tail_empty), shared_.tail_phase ^ 1);
    __syncwarp();
    if (leader_) shared_.tail_phase ^= 1;
    __syncwarp();
  }

  Memory& shared_;
  const Params& params_;
  const bool leader_;
  PipelineState<Config::kStationaryStages> stationary_;
  PipelineState<Config::kStages> moving_;
#ifdef kBiasInShared
  int sequence_, column0_;  // of the stationary tile
#endif
};

// Zeroes what moving tiles hold past their sequence's end. One warp.
template <class Config>
__device__ void zero_tails(Shared<Config>& shared) {
  follow_tails<Config>(shared, shared.moving_full, [&](auto... rows) { zero_tail_rows(shared, rows...); });
}

}  // namespace sm90::backward
