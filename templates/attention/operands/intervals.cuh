// Operands of attention that say which columns each row of q sees: [0, e0), [e1, e2), [e3, e4) and so on, where e0, e1,
// ... are the numbers that attn_func has for the row. These functions stand in place of those that are printed from a
// mask's expression (common/regions.cuh), and RowIntervals in place of t. Any numbers are fine: an interval that ends
// where it begins, or before, is empty, and none reaches outside of the sequence. A row outside of it sees nothing.
#pragma once
#include "common/bits.cuh"
#include "common/jagged.cuh"

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

// The same of columns that each lane of a warp has its own of, and rows that are the same for all lanes: by the bounds
// of each interval over the rows, so that a tile may count as visible, or as not full, that is not.
__device__ __forceinline__ void mask_tile_of_lanes(int r0, int r1, int c0, int c1, int n, const RowIntervals& t,
                                                   bool& full, bool& visible) {
  constexpr int kNowhere = 0x7fffffff;
  int seen_to = c0;
  visible = false;
#pragma unroll 1
  for (int number = 0; number < Spec::kAttnFunc; number += 2) {
    int first_begin = kNowhere, last_begin = 0, first_end = kNowhere, last_end = 0;
#pragma unroll 1
    for (int row = r0 + static_cast<int>(threadIdx.x) % 32; row <= r1; row += 32) {
      const RowInterval interval(row, number, n, t);
      const bool empty = interval.end <= interval.begin;
      const int begin = empty ? kNowhere : interval.begin, end = empty ? 0 : interval.end;
      first_begin = min(first_begin, begin);
      last_begin = max(last_begin, begin);
      first_end = min(first_end, end);
      last_end = max(last_end, end);
    }
    first_begin = __reduce_min_sync(~0u, first_begin);
    last_begin = __reduce_max_sync(~0u, last_begin);
    first_end = __reduce_min_sync(~0u, first_end);
    last_end = __reduce_max_sync(~0u, last_end);
    visible = visible || (first_begin <= c1 && c0 < last_end);
    if (last_begin <= seen_to) seen_to = max(seen_to, first_end);
  }
  full = seen_to > c1;
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
