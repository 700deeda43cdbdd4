// Attention backward on Hopper, deterministic dq accumulation: the warp that waits for the semaphores of this CTA's
// blocks of rows, and the one that releases them, so that consumers wait neither for memory nor for their own
// additions.
//
// Both follow the blocks of rows that consumers work on, and give them back as those do.
#pragma once
#include "attention/sm90_backward/accumulation_order.cuh"
#include "attention/sm90_backward/epilogue.cuh"
#include "attention/sm90_backward_fused/shared.cuh"
#include "common/schedule/semaphore.cuh"

namespace sm90::backward {

// The dq semaphore of one block of rows, as this tile needs it.
struct DqSemaphore {
  u32* counter;
  u32 wait_value;  // what the counter has to be before our part is added; 0: it is the first one
  bool awaited;    // another tile waits for it
};

// The semaphores of a tile's blocks, one after the other; used by one whole warp.
template <class Spec, class Config, class Params>
class DqSemaphores {
 public:
  __device__ __forceinline__ DqSemaphores(FusedShared<Config>& shared, const Params& params)
      : shared_(shared), params_(params) {}

  __device__ __forceinline__ void begin(const TileInfo& tile) {
    start_ = tile.start;
    sequence_ = tile.has_blocks - 1;
    head_ = tile.head;
    more_ = tile.has_blocks;
  }
  __device__ __forceinline__ bool more() const { return more_; }

  // Waits until the next block is there.
  __device__ __forceinline__ DqSemaphore look() {
    const int stage = pipeline_.stage();
    mbarrier_wait(shared_address(&shared_.streamed_full[stage]), pipeline_.phase());
    const BlockInfo block = shared_.block[stage];
    more_ = !(block.flags & BlockInfo::kLast);
    return {semaphore_of<Spec, Config>(params_.dq_semaphore, start_, sequence_, head_, block.line0),
            shared_.semaphore_value[stage], !(block.flags & BlockInfo::kLastPart)};
  }
  // Done with the block: its buffer may be loaded again.
  __device__ __forceinline__ void leave() {
    release_warp<Config>(shared_.streamed_empty[pipeline_.stage()]);
    pipeline_.advance();
  }
  __device__ __forceinline__ void leave_after_consumers() {
    const PipelineState<Config::kStages> left = pipeline_;
    leave();
    mbarrier_wait(shared_address(&shared_.streamed_empty[left.stage()]), left.phase());
  }

 private:
  FusedShared<Config>& shared_;
  const Params& params_;
  PipelineState<Config::kStages> pipeline_;
  i64 start_ = 0;
  int sequence_ = 0, head_ = 0;
  bool more_ = false;
};

// Lets the consumers add to a block of rows once the tile before has. One warp.
template <class Spec, class Config, class Params>
__device__ void wait_for_semaphores(FusedShared<Config>& shared, const Params& params) {
  DqSemaphores<Spec, Config, Params> semaphores(shared, params);
  PipelineState<kExchangeBuffers> part;
  follow_tiles<Config>(shared, [&](const PipelineState<Config::kKeptStages>& kept) {
    semaphores.begin(shared.tile[kept.stage()]);
    release_warp<Config>(shared.kept_empty[kept.stage()]);
    while (semaphores.more()) {
      const DqSemaphore semaphore = semaphores.look();
      semaphores.leave();
      if (threadIdx.x % 32 == 0 && semaphore.wait_value > 0) {
        while (load_acquire(semaphore.counter) < semaphore.wait_value) {
        }
      }
      // Not before all have come to the barrier for the block but one before.
      u64& exchanged = shared.exchanged[part.stage()];
      mbarrier_wait(shared_address(&exchanged), part.phase() ^ 1);
      release_warp<Config>(exchanged);
      part.advance();
    }
  });
}

// Tells the tile after that ours has added to a block of rows, and stores what the consumers have staged where that is
// left to this warp. One warp.
template <class Spec, class Config, class Params>
__device__ void release_semaphores(FusedShared<Config>& shared, const Params& params) {
  DqSemaphores<Spec, Config, Params> semaphores(shared, params);
  follow_tiles<Config>(shared, [&](const PipelineState<Config::kKeptStages>& kept) {
    const int stage = kept.stage();
    const TileInfo& tile = shared.tile[stage];
    const u32 next = value_after(tile.line0 / Config::kBlockM, ceil_div(tile.rows, Config::kBlockM));
    const auto release = [next](const DqSemaphore& semaphore) {
      if (threadIdx.x % 32 == 0 && semaphore.awaited) raise_release(semaphore.counter, next);
    };
    semaphores.begin(tile);
    // Consumers give a block back after they have added to the last but one.
    DqSemaphore last = {}, next_to_last = {};
    while (semaphores.more()) {
      const DqSemaphore semaphore = semaphores.look();
      semaphores.leave_after_consumers();
      release(next_to_last);
      next_to_last = last;
      last = semaphore;
    }
    // And the tile, or what they staged of it, after they have added to all.
    if constexpr (Config::kStoreWarp) {
      mbarrier_wait(shared_address(&shared.kept_staged[stage]), kept.phase());
    } else {
      release_warp<Config>(shared.kept_empty[stage]);
      mbarrier_wait(shared_address(&shared.kept_empty[stage]), kept.phase());
    }
    release(next_to_last);
    release(last);
    if constexpr (Config::kStoreWarp) {
      store_tile<Spec, Config>(shared, params, stage);
      release_warp<Config>(shared.kept_empty[stage]);
    }
  });
}

}  // namespace sm90::backward
