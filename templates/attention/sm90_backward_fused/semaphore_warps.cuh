// Attention backward on Hopper, deterministic dq accumulation: the warp that waits for the semaphores of this CTA's
// Q tiles, and the one that releases them, so that consumers wait neither for memory nor for their own
// additions.
//
// Both follow the Q tiles that consumers work on, and give them back as those do.
#pragma once
#include "attention/sm90_backward/accumulation_order.cuh"
#include "attention/sm90_backward/epilogue.cuh"
#include "attention/sm90_backward_fused/shared.cuh"
#include "common/schedule/semaphore.cuh"

namespace sm90::backward {

// The dq semaphore of one Q tile, as this KV tile needs it.
struct DqSemaphore {
  u32* counter;
  u32 wait_value;  // what the counter has to be before our partial is added; 0: it is the first one
  bool awaited;    // another tile waits for it
};

// The semaphores of a KV tile's Q tiles, one after the other; used by one whole warp.
template <class Spec, class Config, class Params>
class DqSemaphores {
 public:
  __device__ __forceinline__ DqSemaphores(FusedShared<Config>& shared, const Params& params)
      : shared_(shared), params_(params) {}

  __device__ __forceinline__ void begin(const TileInfo& tile) {
    start_ = tile.start;
    sequence_ = tile.sequence();
    head_ = tile.head;
    more_ = tile.has_work();
  }
  __device__ __forceinline__ bool more() const { return more_; }

  // Waits until the next Q tile is there.
  __device__ __forceinline__ DqSemaphore look() {
    const int stage = pipeline_.stage();
    mbarrier_wait(shared_address(&shared_.moving_full[stage]), pipeline_.phase());
    const MovingTileInfo q_tile = shared_.moving_tile[stage];
    more_ = !(q_tile.flags & MovingTileInfo::kLast);
    return {semaphore_of<Spec, Config>(params_.dq_semaphore, start_, sequence_, head_, q_tile.row0),
            shared_.semaphore_value[stage], !(q_tile.flags & MovingTileInfo::kLastPartial)};
  }
  // Done with the Q tile: its buffer may be loaded again.
  __device__ __forceinline__ void leave() {
    release_warp<Config::kLanesArrive>(shared_.moving_empty[pipeline_.stage()]);
    pipeline_.advance();
  }
  __device__ __forceinline__ void leave_after_consumers() {
    const PipelineState<Config::kStages> left = pipeline_;
    leave();
    mbarrier_wait(shared_address(&shared_.moving_empty[left.stage()]), left.phase());
  }

 private:
  FusedShared<Config>& shared_;
  const Params& params_;
  PipelineState<Config::kStages> pipeline_;
  i64 start_ = 0;
  int sequence_ = 0, head_ = 0;
  bool more_ = false;
};

// Lets the consumers add to a Q tile once the tile before has. One warp.
template <class Spec, class Config, class Params>
__device__ void wait_for_semaphores(FusedShared<Config>& shared, const Params& params) {
  DqSemaphores<Spec, Config, Params> semaphores(shared, params);
  PipelineState<kExchangeBuffers> exchange;
  follow_tiles<Config>(shared, [&](const PipelineState<Config::kStationaryStages>& stationary) {
    semaphores.begin(shared.tile[stationary.stage()]);
    release_warp<Config::kLanesArrive>(shared.stationary_empty[stationary.stage()]);
    while (semaphores.more()) {
      const DqSemaphore semaphore = semaphores.look();
      semaphores.leave();
      if (threadIdx.x % 32 == 0 && semaphore.wait_value > 0) {
        while (load_acquire(semaphore.counter) < semaphore.wait_value) {
        }
      }
      // Not before all have come to the barrier for the Q tile but one before.
      u64& exchanged = shared.exchanged[exchange.stage()];
      mbarrier_wait(shared_address(&exchanged), exchange.phase() ^ 1);
      release_warp<Config::kLanesArrive>(exchanged);
      exchange.advance();
    }
  });
}

// Tells the tile after that ours has added to a Q tile, and stores what the consumers have staged where that is
// left to this warp. One warp.
template <class Spec, class Config, class Params>
__device__ void release_semaphores(FusedShared<Config>& shared, const Params& params) {
  DqSemaphores<Spec, Config, Params> semaphores(shared, params);
  follow_tiles<Config>(shared, [&](const PipelineState<Config::kStationaryStages>& stationary) {
    const int stage = stationary.stage();
    const TileInfo& tile = shared.tile[stage];
    const u32 next = value_after(tile.row0 / Config::kBlockM, ceil_div(tile.rows, Config::kBlockM));
    const auto release = [next](const DqSemaphore& semaphore) {
      if (threadIdx.x % 32 == 0 && semaphore.awaited) raise_release(semaphore.counter, next);
    };
    semaphores.begin(tile);
    // Consumers give a Q tile back after they have added to the last but one.
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
      mbarrier_wait(shared_address(&shared.stationary_staged[stage]), stationary.phase());
    } else {
      release_warp<Config::kLanesArrive>(shared.stationary_empty[stage]);
      mbarrier_wait(shared_address(&shared.stationary_empty[stage]), stationary.phase());
    }
    release(next_to_last);
    release(last);
    if constexpr (Config::kStoreWarp) {
      store_tile<Spec, Config>(shared, params, stage);
      release_warp<Config::kLanesArrive>(shared.stationary_empty[stage]);
    }
  });
}

}  // namespace sm90::backward
