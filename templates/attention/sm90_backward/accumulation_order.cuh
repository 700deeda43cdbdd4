// Attention backward on Hopper, dS computed once: which KV tiles add to a Q tile of dq, and in which order,
// where that is fixed.
//
// KV tiles of one (sequence, head) add from the last one to the first. Q tiles are the same for all of them, from row 0
// on. The first KV tile of a Q tile stores its partial, others add theirs, and the last one rounds the sum. What
// mask_columns says decides which KV tiles these are. They have the Q tile even where the mask leaves nothing of it, so
// that every row of dq is written once, whatever the mask, where no sequence is longer than max_seq_len.
//
// With "per_sequence" one CTA has all tiles of a (sequence, head), one after the other. With "semaphore" a KV tile
// waits for the semaphore of each Q tile. Semaphores are counters in global memory, one for each Q tile and head: 0 at
// first, then the number of KV tiles, counted from the last one, that have nothing more to add. CTAs take KV tiles one
// at a time, none is theirs before, from a list that has those of a (sequence, head) from the last one on: whichever
// unfinished tile is the first of the list is being worked on, and need not wait. So no CTA has to be resident for
// another one to end.
#pragma once
#include "attention/operands/interval_bounds.cuh"  // where kAttnFunc
#include "attention/sm90_forward/producer.cuh"
#include "common/regions.cuh"

namespace sm90::backward {

// The KV tiles that add to a Q tile. The one that does so first has the highest number.
struct Contributors {
  int adds_first, adds_last;
};

template <class Config>
__device__ __forceinline__ Contributors contributors_of(const Sequence& sequence, int row0) {
  int begin, end;
#ifdef kAttnFunc
  begin = sequence.rows;
  end = 0;
  const IntervalBounds* const bounds = q_tile_bounds<Config>(sequence, row0);
#pragma unroll 1
  for (int i = 0; i < kIntervals; ++i) {
    begin = min(begin, bounds[i].first_begin);
    end = max(end, bounds[i].last_end);
  }
#else
  mask_columns(row0, min(row0 + Config::kBlockN, sequence.rows) - 1, sequence.rows, sequence.targets, begin, end);
  begin = max(begin, 0);
  end = min(end, sequence.rows);
#endif
  if (end <= begin) return {row0 / Config::kBlockM, row0 / Config::kBlockM};
  return {(end - 1) / Config::kBlockM, begin / Config::kBlockM};
}

// Value of the semaphore of a Q tile and head, after a tile has added to it; what the next one waits for.
__device__ __forceinline__ u32 value_after(int tile, int tiles) { return static_cast<u32>(tiles - tile); }

// The semaphore of a Q tile of kBlockN rows. `sequence`: its number in the batch. No two Q tiles have the same one:
// where a sequence ends within a Q tile, the next one is one further on. Offsets that overlap may lead to one twice; as
// they only grow, nobody waits for ever.
template <class Spec, class Config>
__device__ __forceinline__ u32* semaphore_of(u32* dq_semaphore, i64 start, int sequence, int head, int row0) {
  return dq_semaphore + (start / Config::kBlockN + sequence + row0 / Config::kBlockN) * Spec::kHeads + head;
}

// The Q tiles that a tile of columns has.
template <class Config, class View>
class FixedOrderTiles : public MovingTileWalk<Config, FixedOrderTiles<Config, View>> {
 public:
  __device__ __forceinline__ FixedOrderTiles(const Sequence& sequence, int column0, int)
      : sequence_(sequence), column0_(column0) {
    first_row_ = 0;
    flags_ = 0;
    classify();
  }

  __device__ __forceinline__ MovingTileInfo pop() {
    if constexpr (kThereAndBack) {
      if (column0_ / Config::kBlockM % 2 != 0) return Walk::template pop<true>();
    }
    return Walk::pop();
  }

  // The value that the next Q tile's semaphore is waited for with; 0: none.
  __device__ __forceinline__ u32 semaphore_value() const {
    return __shfl_sync(~0u, semaphore_value_, __ffs(visible_) - 1);
  }

  __device__ __forceinline__ void classify() {
    for (; first_row_ < sequence_.rows; first_row_ += 32 * Config::kBlockN) {
#ifdef kAttnFunc
      if (!seen_.some(sequence_, column0_, first_row_)) continue;
#endif
      const int row0 = first_row_ + static_cast<int>(threadIdx.x % 32) * Config::kBlockN,
                tile = column0_ / Config::kBlockM;
      Contributors contributors = {-1, 0};
      if (row0 < sequence_.rows) contributors = contributors_of<Config>(sequence_, row0);
      const bool between = contributors.adds_last <= tile && tile <= contributors.adds_first;
      if (__ballot_sync(~0u, between) == 0) continue;
      flags_ = 0;
      semaphore_value_ = 0;
      if (between) {
        flags_ = mask_flags<Config, View>(sequence_, column0_, row0, sequence_.rows);
        if (tile == contributors.adds_first) flags_ |= MovingTileInfo::kFirstPartial;
        if (tile == contributors.adds_last) flags_ |= MovingTileInfo::kLastPartial;
        if constexpr (Config::kScheduleSemaphore) {
          if (flags_ != 0 && tile < contributors.adds_first)
            semaphore_value_ = value_before(tile, contributors.adds_first, row0);
        }
      }
      visible_ = __ballot_sync(
          ~0u, flags_ & (kVisibleFlags<Config> | MovingTileInfo::kFirstPartial | MovingTileInfo::kLastPartial));
      if (visible_ != 0) return;
    }
  }

 private:
  // Where one CTA has all tiles, and their sums in L2: every other tile has its Q tiles backwards, 32 at a
  // time, as the rows that one tile had last are likely to be in L2 still when the next one comes to them.
  static constexpr bool kThereAndBack = Config::kSchedulePerSequence && Config::kSmemAccumTiles == 0;

  using Walk = MovingTileWalk<Config, FixedOrderTiles>;
  using Walk::first_row_;
  using Walk::flags_;
  using Walk::visible_;

  // Value after the tile before this one, among the tiles that have the Q tile.
  __device__ __forceinline__ u32 value_before(int tile, int first, int row0) const {
#ifdef kAttnFunc
    // The first one within the bounds of an interval.
    const IntervalBounds* const bounds = q_tile_bounds<Config>(sequence_, row0);
    int before = first;
#pragma unroll 1
    for (int i = 0; i < kIntervals; ++i) {
      const int next = max(tile + 1, bounds[i].first_begin / Config::kBlockM);
      if (next * Config::kBlockM < bounds[i].last_end) before = min(before, next);
    }
#else
    int before = tile + 1;
    while (before < first && (mask_flags<Config, View>(sequence_, before * Config::kBlockM, row0, sequence_.rows) &
                              kVisibleFlags<Config>) == 0) {
      ++before;
    }
#endif
    return value_after(before, ceil_div(sequence_.rows, Config::kBlockM));
  }

  const Sequence& sequence_;
  const int column0_;
#ifdef kAttnFunc
  SeenQTiles<Config> seen_;
#endif
  u32 semaphore_value_ = 0;  // of the Q tile of this lane
};

}  // namespace sm90::backward
