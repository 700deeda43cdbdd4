// Attention backward on Hopper: the producer warp, which walks tiles and blocks and feeds the pipeline, and the tail
// warp, which zeroes what streamed blocks hold past the end of a sequence.
#pragma once
#include "attention/sm90_backward/accumulation_order.cuh"
#include "attention/sm90_backward/tile_scheduler.cuh"
#include "common/ptx/tma.cuh"
#include "common/regions.cuh"

namespace sm90::backward {

// As in forward, but for columns past the sequence's end: what is streamed in their place is zero, whatever its score.
struct RowsView : sm90::RowsView {
  static __device__ __forceinline__ void tile(int r0, int r1, int c0, int c1, const Sequence& sequence, bool& must,
                                              bool& may) {
    sm90::RowsView::tile(r0, r1, c0, min(c1, sequence.rows - 1), sequence, must, may);
  }
};

// The mask as a tile of columns sees it, which walks blocks of rows.
struct ColumnsView {
  static __device__ __forceinline__ void range(int c0, int c1, const Sequence& sequence, int& begin, int& end) {
    mask_rows(c0, c1, sequence.rows, sequence.targets, begin, end);
  }
  static __device__ __forceinline__ void tile(int c0, int c1, int r0, int r1, const Sequence& sequence, bool& must,
                                              bool& may) {
    mask_tile(r0, min(r1, sequence.rows - 1), c0, c1, sequence.rows, sequence.targets, must, may);
  }
};

template <class Config, Role kRole, bool kFixed = kFixedOrder<Config>>
struct BlocksOf {
  using type = VisibleBlocks<Config, ColumnsView>;
};
template <class Config>
struct BlocksOf<Config, Role::kRows, false> {
  using type = VisibleBlocks<Config, RowsView>;
};
template <class Config>
struct BlocksOf<Config, Role::kColumns, true> {
  using type = FixedOrderBlocks<Config, ColumnsView>;
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
      const int first = tile.line_tile * Config::kBlockM;
      typename BlocksOf<Config, kRole>::type blocks(sequence, first, min(first + Config::kBlockM, sequence.rows));
      load_tile<kRole>(tile, sequence, first, !blocks.empty());
      while (!blocks.empty()) {
        u32 semaphore_value = 0;
        if constexpr (Config::kScheduleOrdered) semaphore_value = blocks.semaphore_value();
        const BlockInfo block = blocks.pop();
        if constexpr (kFixedOrder<Config>) {
          if (blocks.empty()) schedule.prepare();
        }
        load_block<kRole>(block, semaphore_value, tile.head, sequence);
      }
    }
  }

  // Tells the consumers, and the tail warp, that there is nothing more.
  __device__ __forceinline__ void finish() {
    mbarrier_wait(shared_address(&shared_.kept_empty[kept_.stage()]), kept_.phase() ^ 1);
    if (leader_) {
      shared_.tile[kept_.stage()].role = Role::kNone;
      arrive_for_pair(shared_.kept_full[kept_.stage()]);
    }
    if constexpr (kTailWarp<Config>) {
      wait_for_tail_warp();
      if (leader_) {
        shared_.tail.stage = -1;
        arrive_for_pair(shared_.tail_full);
      }
    }
  }

 private:
  template <Role kRole>
  __device__ __forceinline__ void load_tile(const Tile& tile, const Sequence& sequence, int first, bool has_blocks) {
    const int s = kept_.stage();
    mbarrier_wait(shared_address(&shared_.kept_empty[s]), kept_.phase() ^ 1);
    if (leader_) {
      shared_.place[s] = kept_;
      shared_.tile[s] = {sequence.start, first, sequence.rows, sequence.targets, tile.head, has_blocks, kRole};
      if constexpr (kKeepSequence<Spec, Config>) {
        if (has_blocks) shared_.tile[s].has_blocks = tile.sequence + 1;
      }
      if (has_blocks) {
        const u32 full = shared_address(&shared_.kept_full[s]);
        const int row = static_cast<int>(sequence.start) + first, rows = sequence.rows - first;
        const u32 kept_first = shared_address(shared_.kept_first[s]),
                  kept_second = shared_address(shared_.kept_second[s]);
        if constexpr (kRole == Role::kRows) {
          load_pair<Config::kBlockM>(kept_first, params_.q_map, params_.q_tail_map, kept_second, params_.dout_map,
                                     params_.dout_tail_map, full, tile.head, row, rows);
        } else {
          load_pair<Config::kBlockM>(kept_first, params_.k_map, params_.k_tail_map, kept_second, params_.v_map,
                                     params_.v_tail_map, full, tile.head, row, rows);
        }
      } else {
        arrive_for_pair(shared_.kept_full[s]);
      }
    }
    __syncwarp();
    kept_.advance();
  }

  template <Role kRole>
  __device__ __forceinline__ void load_block(const BlockInfo& block, [[maybe_unused]] u32 semaphore_value, int head,
                                             const Sequence& sequence) {
    const int s = streamed_.stage();
    const int row = static_cast<int>(sequence.start) + block.line0, rows = sequence.rows - block.line0;
    // Without a tail warp, the consumer zeroes the lines past the sequence's end itself.
    const bool tail = kTailWarp<Config> && rows < Config::kBlockN;
    mbarrier_wait(shared_address(&shared_.streamed_empty[s]), streamed_.phase() ^ 1);
    if (tail) wait_for_tail_warp();
    if (leader_) {
      const u32 full = shared_address(tail ? &shared_.tail_full : &shared_.streamed_full[s]);
      shared_.block[s] = block;
      if constexpr (Config::kScheduleOrdered) shared_.semaphore_value[s] = semaphore_value;
      if (tail) {
        // In place of one load; the tail warp arrives for the other, after it has zeroed both.
        shared_.tail = {s, rows};
        mbarrier_arrive(shared_address(&shared_.streamed_full[s]));
      }
      const u32 first = shared_address(shared_.streamed_first[s]), second = shared_address(shared_.streamed_second[s]);
      if constexpr (kRole == Role::kRows) {
        load_pair<Config::kBlockN>(first, params_.k_block_map, params_.k_tail_map, second, params_.v_block_map,
                                   params_.v_tail_map, full, head, row, rows);
      } else {
        load_pair<Config::kBlockN>(first, params_.q_block_map, params_.q_tail_map, second, params_.dout_block_map,
                                   params_.dout_tail_map, full, head, row, rows);
      }
    }
    __syncwarp();
    streamed_.advance();
  }

  // Whole boxes of kLines lines, or pieces of those that the sequence has.
  template <int kLines>
  __device__ __forceinline__ void load_pair(u32 first, const TensorMap& first_map, const TensorMap& first_pieces,
                                            u32 second, const TensorMap& second_map, const TensorMap& second_pieces,
                                            u32 full, int head, int row, int rows) {
    load_operand<Config::kQkTiles, kLines>(first, first_map, first_pieces, full, head, row, rows);
    load_operand<Config::kPvTiles, kLines>(second, second_map, second_pieces, full, head, row, rows);
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
  PipelineState<Config::kKeptStages> kept_;
  PipelineState<Config::kStages> streamed_;
};

// Zeroes what streamed blocks hold past their sequence's end. One warp.
template <class Config>
__device__ void zero_tails(Shared<Config>& shared) {
  follow_tails<Config>(shared, shared.streamed_full, [&](auto... lines) { zero_lines(shared, lines...); });
}

}  // namespace sm90::backward
