// Operands of attention that say which columns each row of q sees: [0, e0), [e1, e2), [e3, e4) and so on, where e0, e1,
// ... are the numbers that attn_func has for the row. These functions stand in place of those that are printed from a
// mask's expression (common/regions.cuh), and RowIntervals in place of t. Any numbers are fine: an interval that ends
// where it begins, or before, is empty, and none reaches outside of the sequence. A row outside of it sees nothing.
#pragma once
#include "common/bits.cuh"
#include "common/jagged.cuh"

constexpr int kIntervals = (Spec::kAttnFunc + 1) / 2;  // of a row

// Many intervals are walked in a loop: a kernel has code for each pair of a fragment.
constexpr int kUnrolledIntervals = Spec::kAttnFunc <= 7 ? Spec::kAttnFunc : 1;

__device__ __forceinline__ int interval_number(const RowIntervals& t, int row, int number) {
  return __ldg(t.first + number * t.stride + row);
}

// Where the interval whose end is this number of the row begins and ends, within the sequence.
struct RowInterval {
  int begin, end;

  __device__ __forceinline__ RowInterval(int row, int number, int n, const RowIntervals& t) : begin(0), end(0) {
    if (static_cast<u32>(row) >= static_cast<u32>(n)) return;
    if (number > 0) begin = max(interval_number(t, row, number - 1), 0);
    end = min(max(interval_number(t, row, number), 0), n);
  }
};

__device__ __forceinline__ bool mask_valid(int row, int col, int n, const RowIntervals& t) {
  bool valid = false;
#pragma unroll kUnrolledIntervals
  for (int number = 0; number < Spec::kAttnFunc; number += 2) {
    const RowInterval interval(row, number, n, t);
    valid = valid || (interval.begin <= col && col < interval.end);
  }
  return valid;
}

__device__ __forceinline__ u32 mask_row_bits(int row, int c0, int n, const RowIntervals& t) {
  u32 bits = 0;
#pragma unroll kUnrolledIntervals
  for (int number = 0; number < Spec::kAttnFunc; number += 2) {
    const RowInterval interval(row, number, n, t);
    bits |= bits_from(interval.begin - c0) & ~bits_from(interval.end - c0);
  }
  return bits;
}

__device__ __forceinline__ u32 mask_column_bits(int col, int r0, int n, const RowIntervals& t) {
  return bits_where([&](int i) { return mask_valid(r0 + i, col, n, t); });
}

// Classifies a tile that is the same one for all lanes of a warp, which look at its rows together.
__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, const RowIntervals& t, bool& full,
                                          bool& visible) {
  bool all = true, some = false;
#pragma unroll 1
  for (int row = r0 + static_cast<int>(threadIdx.x) % 32; row <= r1; row += 32) {
    int seen_to = c0;  // the row sees the columns from c0 to here
#pragma unroll kUnrolledIntervals
    for (int number = 0; number < Spec::kAttnFunc; number += 2) {
      const RowInterval interval(row, number, n, t);
      some = some || (interval.begin <= c1 && max(c0, interval.begin) < interval.end);
      if (interval.begin <= seen_to) seen_to = max(seen_to, interval.end);
    }
    all = all && seen_to > c1;
  }
  full = __ballot_sync(~0u, all) == ~0u;
  visible = __ballot_sync(~0u, some) != 0;
}

// Where an interval begins and ends at the earliest and at the latest, over rows. An empty one begins nowhere.
struct alignas(16) IntervalBounds {
  int first_begin, last_begin, first_end, last_end;
};

// Bounds of the interval whose end is this number of each row. By all lanes of a warp, for the same rows.
__device__ __forceinline__ IntervalBounds interval_bounds(int r0, int r1, int number, int n, const RowIntervals& t) {
  constexpr int kNowhere = 0x7fffffff;
  IntervalBounds bounds = {kNowhere, 0, kNowhere, 0};
#pragma unroll 1
  for (int row = r0 + static_cast<int>(threadIdx.x) % 32; row <= r1; row += 32) {
    const RowInterval interval(row, number, n, t);
    const bool empty = interval.end <= interval.begin;
    const int begin = empty ? kNowhere : interval.begin, end = empty ? 0 : interval.end;
    bounds.first_begin = min(bounds.first_begin, begin);
    bounds.last_begin = max(bounds.last_begin, begin);
    bounds.first_end = min(bounds.first_end, end);
    bounds.last_end = max(bounds.last_end, end);
  }
  bounds.first_begin = __reduce_min_sync(~0u, bounds.first_begin);
  bounds.last_begin = __reduce_max_sync(~0u, bounds.last_begin);
  bounds.first_end = __reduce_min_sync(~0u, bounds.first_end);
  bounds.last_end = __reduce_max_sync(~0u, bounds.last_end);
  return bounds;
}

// Classifies a tile by the bounds of its rows' intervals, bounds_of(number) each, so that it may count as visible, or as
// not full, that is not.
template <class BoundsOf>
__device__ __forceinline__ void classify_by_bounds(int c0, int c1, const BoundsOf& bounds_of, bool& full,
                                                   bool& visible) {
  int seen_to = c0;  // all rows see the columns from c0 to here
  visible = false;
#pragma unroll 1
  for (int number = 0; number < Spec::kAttnFunc; number += 2) {
    const IntervalBounds bounds = bounds_of(number);
    visible = visible || (bounds.first_begin <= c1 && c0 < bounds.last_end);
    if (bounds.last_begin <= seen_to) seen_to = max(seen_to, bounds.first_end);
  }
  full = seen_to > c1;
}

// Classifies a tile whose columns each lane of a warp has its own of; the rows are the same for all lanes.
__device__ __forceinline__ void mask_tile_of_lanes(int r0, int r1, int c0, int c1, int n, const RowIntervals& t,
                                                   bool& full, bool& visible) {
  classify_by_bounds(c0, c1, [&](int number) { return interval_bounds(r0, r1, number, n, t); }, full, visible);
}

// By all lanes of a warp.
__device__ __forceinline__ void mask_columns(int r0, int r1, int n, const RowIntervals& t, int& lo, int& hi) {
  lo = n;
  hi = 0;
#pragma unroll 1
  for (int row = r0 + static_cast<int>(threadIdx.x) % 32; row <= r1; row += 32) {
#pragma unroll kUnrolledIntervals
    for (int number = 0; number < Spec::kAttnFunc; number += 2) {
      const RowInterval interval(row, number, n, t);
      if (interval.begin >= interval.end) continue;
      lo = min(lo, interval.begin);
      hi = max(hi, interval.end);
    }
  }
  lo = __reduce_min_sync(~0u, lo);
  hi = __reduce_max_sync(~0u, hi);
}

// Any row may see any column: which tiles of rows do is asked of each.
__device__ __forceinline__ void mask_rows(int, int, int n, const RowIntervals&, int& lo, int& hi) {
  lo = 0;
  hi = n;
}
