// hstu_attention on Ampere and Ada: the moving tiles that pass by a stationary tile, and the pipeline that they come
// through.
//
// A CTA owns a tile of rows (of q; forward, and dq of backward) or of columns (of k and v; dk and dv), and
// moving tiles of the other coordinate pass by it.
#pragma once
#include "attention/pair.cuh"
#include "attention/sequence.cuh"
#include "common/jagged.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/regions.cuh"

namespace sm80 {

// The mask as a tile of rows sees it. Ranges of tiles are inclusive.
struct RowsView {
  static constexpr bool kRows = true;

  static __device__ __forceinline__ void range(int own0, int own1, const Sequence& s, int& begin, int& end) {
    mask_columns(own0, own1, s.rows, s.targets, begin, end);
  }
  static __device__ __forceinline__ void tile(int own0, int own1, int other0, int other1, const Sequence& s, bool& full,
                                              bool& visible) {
    mask_tile(own0, own1, other0, other1, s.rows, s.targets, full, visible);
  }
  static __device__ __forceinline__ Pair pair(int own, int other, const Sequence& s, int head) {
    return {own, other, s.rows, s.targets, head, s.start};
  }
  static __device__ __forceinline__ bool valid(int own, int other, const Sequence& s) {
    return mask_valid(own, other, s.rows, s.targets);
  }
};

struct MovingTile {
  int first;  // of its columns (or rows) within the sequence; negative when there is none
  bool full;  // every pair with the stationary tile is valid
};

// Walks over the moving tiles that a tile may see (that may see a tile of columns).
template <class Spec, class Config, class View>
class MovingTileCursor {
 public:
  __device__ __forceinline__ MovingTileCursor(int own0, const Sequence& sequence)
      : own0_(own0), own1_(min(own0 + Config::kBlockM, sequence.rows) - 1), sequence_(sequence) {
    View::range(own0_, own1_, sequence_, next_, end_);
    next_ = max(next_, 0);
#ifdef kDropout
    next_ &= ~15;  // what is drawn is of 16 columns, or rows
#else
    if constexpr (Config::kEvenTiles) next_ &= ~1;
#endif
    if constexpr (Config::kDelta && !View::kRows) next_ = max(next_, first_query_row(sequence));
    end_ = min(end_, sequence.rows);
  }

  __device__ __forceinline__ MovingTile next() {
    while (next_ < end_) {
      const int first = next_;
      next_ += Config::kBlockN;
      bool full = true, visible = true;
      if constexpr (!Spec::kMaskTrivial) {
        View::tile(own0_, own1_, first, min(first + Config::kBlockN, sequence_.rows) - 1, sequence_, full, visible);
      }
      if (visible) return {first, full && first + Config::kBlockN <= sequence_.rows};
    }
    return {-1, false};
  }

 private:
  int own0_, own1_;
  const Sequence sequence_;
  int next_, end_;
};

// The pipeline. The tile itself is on its way, one copy group of each thread, when this is called. `job`:
//   load_moving(tile, stage)   starts the copies of a tile; this commits them
//   round_own(), round_moving(stage)   what a thread does to what it copied itself, before others read it
//   own_arrived()              the tile can be read
//   multiply(tile, stage)      the tile can be read
template <int kStages, class Cursor, class Job>
__device__ __forceinline__ void walk_moving_tiles(Cursor cursor, Job& job) {
  constexpr int kAhead = kStages - 1;  // moving tiles on their way while one is worked on
  MovingTile queue[kAhead + 1];        // the moving tile to work on, then those on their way
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    queue[i] = cursor.next();
    if (queue[i].first >= 0) job.load_moving(queue[i], i);
    cp_async_commit_group();
  }
  cp_async_wait_group<kAhead>();
  job.round_own();
  __syncthreads();
  job.own_arrived();

  // The stage that is filled is the one that was read in the iteration before: the barrier lies between the two.
  int stage = 0, fill = kAhead;
  while (true) {
    if constexpr (kAhead == 0) {
      queue[0] = cursor.next();
      if (queue[0].first < 0) return;
      job.load_moving(queue[0], 0);
      cp_async_commit_group();
      cp_async_wait_group<0>();
    } else {
      if (queue[0].first < 0) return;
      cp_async_wait_group<kAhead - 1>();
    }
    job.round_moving(stage);
    __syncthreads();
    if constexpr (kAhead > 0) {
      queue[kAhead] = cursor.next();
      if (queue[kAhead].first >= 0) job.load_moving(queue[kAhead], fill);
      cp_async_commit_group();
    }
    job.multiply(queue[0], stage);
    if constexpr (kAhead == 0) {
      __syncthreads();
    } else {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) queue[i] = queue[i + 1];
      fill = stage;
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
  }
}

}  // namespace sm80
