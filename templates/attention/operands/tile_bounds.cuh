// Attention with attn_func on Hopper: bounds of the intervals of a row tile, for each of its warpgroups, in registers
// of the producer's lanes. Classifying 32 KV tiles by them reads no memory.
#pragma once
#include "attention/operands/intervals.cuh"

// By one whole warp, all lanes in step. kWarpgroups of kRows rows each.
template <int kWarpgroups, int kRows>
class RowTileBounds {
 public:
  // The rows from `row0` on, of a sequence of n rows. Row row0 is one of q.
  __device__ __forceinline__ RowTileBounds(int row0, int n, const RowIntervals& t) : n_(n) {
#pragma unroll
    for (IntervalBounds& own : own_) own = IntervalBounds();
    // Few numbers are all on their way at once.
    constexpr int kAtOnce = Spec::kAttnFunc <= 3 ? kIntervals : 1, kLoads = kRows / 32;
#pragma unroll 1
    for (int first = 0; first < kIntervals; first += kAtOnce) {
      RowInterval loaded[kAtOnce * kWarpgroups * kLoads];
#pragma unroll
      for (int i = 0; i < kAtOnce * kWarpgroups * kLoads; ++i) {
        loaded[i] = row_interval(row0 + i % (kWarpgroups * kLoads) * 32 + static_cast<int>(threadIdx.x) % 32,
                                 2 * (first + i / (kWarpgroups * kLoads)), n, t);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce * kWarpgroups; ++i) {
        IntervalBounds bounds;
#pragma unroll
        for (int load = 0; load < kLoads; ++load) {
          const int row = row0 + i % kWarpgroups * kRows + load * 32 + static_cast<int>(threadIdx.x) % 32;
          if (row < n) bounds.add(loaded[i * kLoads + load]);
        }
        bounds.reduce();
        keep(i % kWarpgroups * kIntervals + first + i / kWarpgroups, bounds);
      }
    }
  }

  // Columns that some of the rows see lie in [begin, end), which is empty where begin >= end.
  __device__ __forceinline__ void range(int& begin, int& end) const {
    begin = n_;
    end = 0;
#pragma unroll
    for (const IntervalBounds& own : own_) {
      begin = min(begin, own.first_begin);
      end = max(end, own.last_end);
    }
    begin = __reduce_min_sync(~0u, begin);
    end = __reduce_max_sync(~0u, end);
  }

  // Classifies the KV tile of this lane for the rows of a warpgroup.
  __device__ __forceinline__ void tile(int warpgroup, int c0, int c1, bool& full, bool& visible) const {
    classify_by_bounds(
        c0, c1, [&](int interval) { return bounds_of(warpgroup * kIntervals + interval); }, full, visible);
  }

 private:
  static constexpr int kOwn = ceil_div(kWarpgroups * kIntervals, 32);  // bounds of a lane

  __device__ __forceinline__ void keep(int place, const IntervalBounds& bounds) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      if (place == i * 32 + static_cast<int>(threadIdx.x) % 32) own_[i] = bounds;
    }
  }

  __device__ __forceinline__ IntervalBounds bounds_of(int place) const {
    IntervalBounds own = own_[0];
    if (kOwn > 1 && place >= 32) own = own_[kOwn - 1];
    return own.of_lane(place % 32);
  }

  const int n_;
  IntervalBounds own_[kOwn];  // of place lane + 32 i, where place is warpgroup * kIntervals + interval
};
