// Attention backward on Hopper, parts of dq in order: the warp that waits for this block's turns, and the one that
// gives them on, so that consumers wait neither for memory nor for their own additions.
//
// Both follow the blocks of rows that consumers work on, and give them back as those do.
#pragma once
#include "common/schedule/semaphore.cuh"
#include "attention/sm90_backward_fused/shared.cuh"
#include "attention/sm90_backward/accumulation_order.cuh"
#include "attention/sm90_backward/epilogue.cuh"

namespace sm90::backward {

// This tile's turn of one block of rows.
struct Turn {
  u32* counter;
  u32 begins_at;   // what the counter has to be before our part is added; 0: it is the first one
  bool passed_on;  // another tile waits for it
};

// The turns of a tile's blocks, one after the other; used by one whole warp.
template <class Spec, class Config, class Params>
class Turns {
 public:
  __device__ __forceinline__ Turns(FusedShared<Config>& shared, const Params& params)
      : shared_(shared), params_(params) {}

  __device__ __forceinline__ void begin(const TileInfo& tile) {
    start_ = tile.start;
    sequence_ = tile.has_blocks - 1;
    head_ = tile.head;
    more_ = tile.has_blocks;
  }
  __device__ __forceinline__ bool more() const { return more_; }

  // Waits until the next block is there.
  __device__ __forceinline__ Turn look() {
    const int stage = ring_.stage();
    mbarrier_wait(shared_address(&shared_.streamed_full[stage]), ring_.parity());
    const BlockInfo block = shared_.block[stage];
    more_ = !(block.flags & BlockInfo::kLast);
    return {turn_of<Spec, Config>(params_.turns, start_, sequence_, head_, block.line0), shared_.turn[stage],
            !(block.flags & BlockInfo::kLastPart)};
  }
  // Done with the block: its buffer may be loaded again.
  __device__ __forceinline__ void leave() {
    release_warp<Config>(shared_.streamed_empty[ring_.stage()]);
    ring_.advance();
  }
  __device__ __forceinline__ void leave_after_consumers() {
    const Ring<Config::kStages> left = ring_;
    leave();
    mbarrier_wait(shared_address(&shared_.streamed_empty[left.stage()]), left.parity());
  }

 private:
  FusedShared<Config>& shared_;
  const Params& params_;
  Ring<Config::kStages> ring_;
  i64 start_ = 0;
  int sequence_ = 0, head_ = 0;
  bool more_ = false;
};

// Lets the consumers add to a block of rows once the tile before has. One warp.
template <class Spec, class Config, class Params>
__device__ void wait_for_turns(FusedShared<Config>& shared, const Params& params) {
  Turns<Spec, Config, Params> turns(shared, params);
  Ring<kExchangeBuffers> part;
  follow_tiles<Config>(shared, [&](const Ring<Config::kKeptStages>& kept) {
    turns.begin(shared.tile[kept.stage()]);
    release_warp<Config>(shared.kept_empty[kept.stage()]);
    while (turns.more()) {
      const Turn turn = turns.look();
      turns.leave();
      if (threadIdx.x % 32 == 0 && turn.begins_at > 0) {
        while (load_acquire(turn.counter) < turn.begins_at) {
        }
      }
      // Not before all have come to the barrier for the block but one before.
      u64& exchanged = shared.exchanged[part.stage()];
      mbarrier_wait(shared_address(&exchanged), part.parity() ^ 1);
      release_warp<Config>(exchanged);
      part.advance();
    }
  });
}

// Tells the tile after that ours has added to a block of rows, and stores what the consumers have staged where that is
// left to this warp. One warp.
template <class Spec, class Config, class Params>
__device__ void pass_turns_on(FusedShared<Config>& shared, const Params& params) {
  Turns<Spec, Config, Params> turns(shared, params);
  follow_tiles<Config>(shared, [&](const Ring<Config::kKeptStages>& kept) {
    const int stage = kept.stage();
    const TileInfo& tile = shared.tile[stage];
    const u32 next = turn_after(tile.line0 / Config::kBlockM, ceil_div(tile.rows, Config::kBlockM));
    const auto pass_on = [next](const Turn& turn) {
      if (threadIdx.x % 32 == 0 && turn.passed_on) raise_release(turn.counter, next);
    };
    turns.begin(tile);
    // Consumers give a block back after they have added to the last but one.
    Turn last = {}, next_to_last = {};
    while (turns.more()) {
      const Turn turn = turns.look();
      turns.leave_after_consumers();
      pass_on(next_to_last);
      next_to_last = last;
      last = turn;
    }
    // And the tile, or what they staged of it, after they have added to all.
    if constexpr (Config::kStoreWarp) {
      mbarrier_wait(shared_address(&shared.kept_staged[stage]), kept.parity());
    } else {
      release_warp<Config>(shared.kept_empty[stage]);
      mbarrier_wait(shared_address(&shared.kept_empty[stage]), kept.parity());
    }
    pass_on(next_to_last);
    pass_on(last);
    if constexpr (Config::kStoreWarp) {
      store_tile<Spec, Config>(shared, params, stage);
      release_warp<Config>(shared.kept_empty[stage]);
    }
  });
}

}  // namespace sm90::backward
