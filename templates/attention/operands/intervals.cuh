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

// Where an interval of a row begins and ends, within the sequence.
struct RowInterval {
  int begin, end;

  __device__ __forceinline__ bool empty() const { return end <= begin; }
};

// The interval whose end is this number of the row: an empty one of a row outside of the sequence. Reads without a
// branch, so that many numbers are on their way at once.
__device__ __forceinline__ RowInterval row_interval(int row, int number, int n, const RowIntervals& t) {
  const int inside = min(row, n - 1);
  const int begin = number > 0 ? interval_number(t, inside, number - 1) : 0, end = interval_number(t, inside, number);
  return {max(begin, 0), static_cast<u32>(row) < static_cast<u32>(n) ? min(max(end, 0), n) : 0};
}

__device__ __forceinline__ bool mask_valid(int row, int col, int n, const RowIntervals& t) {
  bool valid = false;
#pragma unroll kUnrolledIntervals
  for (int number = 0; number < Spec::kAttnFunc; number += 2) {
    const RowInterval interval = row_interval(row, number, n, t);
    valid = valid || (interval.begin <= col && col < interval.end);
  }
  return valid;
}

__device__ __forceinline__ u32 mask_row_bits(int row, int c0, int n, const RowIntervals& t) {
  u32 bits = 0;
#pragma unroll kUnrolledIntervals
  for (int number = 0; number < Spec::kAttnFunc; number += 2) {
    const RowInterval interval = row_interval(row, number, n, t);
    bits |= bits_from(interval.begin - c0) & ~bits_from(interval.end - c0);
  }
  return bits;
}

// The intervals of one row, kept in registers where they are few.
struct KeptIntervals {
  static constexpr bool kFew = Spec::kAttnFunc <= 3;
  RowInterval intervals[kFew ? kIntervals : 1];

  __device__ __forceinline__ void load(int row, int n, const RowIntervals& t) {
    if constexpr (kFew) {
#pragma unroll
      for (int i = 0; i < kIntervals; ++i) intervals[i] = row_interval(row, 2 * i, n, t);
    }
  }

  // As mask_row_bits of the same row.
  __device__ __forceinline__ u32 bits(int row, int c0, int n, const RowIntervals& t) const {
    if constexpr (!kFew) return mask_row_bits(row, c0, n, t);
    u32 bits = 0;
#pragma unroll
    for (const RowInterval& interval : intervals)
      bits |= bits_from(interval.begin - c0) & ~bits_from(interval.end - c0);
    return bits;
  }
};

__device__ __forceinline__ u32 mask_column_bits(int col, int r0, int n, const RowIntervals& t) {
  return bits_where([&](int i) { return mask_valid(r0 + i, col, n, t); });
}

// As FragmentMask asks for them, the rows that see the columns of a thread's accumulators: it has every eighth row and
// the next one, from lane % 4 * 2 on, and of the warp's 16 columns number lane / 4 and the one 8 further. The lanes
// look at 32 rows together, a row each. By all lanes of a warp.
template <int kRows>
class ColumnBits {
 public:
  // For the rows from r0 on, and the warp's columns from c0 on.
  __device__ __forceinline__ ColumnBits(int r0, int c0, int n, const RowIntervals& t) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int word = 0; word < kWords; ++word) {
      const u32 own = mask_row_bits(r0 + 32 * word + lane, c0, n, t) & 0xffff;
      // Lanes of even number have the next row, too.
      const u32 two_rows = own | __shfl_xor_sync(~0u, own, 1) << 16;
      bits_[word][0] = bits_[word][1] = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const u32 columns = __shfl_sync(~0u, two_rows, 8 * i + lane % 4 * 2) >> lane / 4;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const u32 seen = columns >> 8 * half;
          bits_[word][half] |= (seen & 1 | seen >> 15 & 2) << 8 * i;
        }
      }
    }
  }

  __device__ __forceinline__ u32 operator()(int half, int further) const { return bits_[further / 32][half]; }

 private:
  static constexpr int kWords = ceil_div(kRows, 32);

  u32 bits_[kWords][2];
};

// Classifies a tile that is the same one for all lanes of a warp, which look at its rows together.
__device__ __forceinline__ void mask_tile(int r0, int r1, int c0, int c1, int n, const RowIntervals& t, bool& full,
                                          bool& visible) {
  bool all = true, some = false;
#pragma unroll 1
  for (int row = r0 + static_cast<int>(threadIdx.x) % 32; row <= r1; row += 32) {
    int seen_to = c0;  // the row sees the columns from c0 to here
#pragma unroll kUnrolledIntervals
    for (int number = 0; number < Spec::kAttnFunc; number += 2) {
      const RowInterval interval = row_interval(row, number, n, t);
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
  static constexpr int kNowhere = 0x7fffffff;
  int first_begin = kNowhere, last_begin = 0, first_end = kNowhere, last_end = 0;

  __device__ __forceinline__ void add(const RowInterval& interval) {
    const int begin = interval.empty() ? kNowhere : interval.begin, end = interval.empty() ? 0 : interval.end;
    first_begin = min(first_begin, begin);
    last_begin = max(last_begin, begin);
    first_end = min(first_end, end);
    last_end = max(last_end, end);
  }

  // Over the rows of all lanes of a warp.
  __device__ __forceinline__ void reduce() {
    first_begin = __reduce_min_sync(~0u, first_begin);
    last_begin = __reduce_max_sync(~0u, last_begin);
    first_end = __reduce_min_sync(~0u, first_end);
    last_end = __reduce_max_sync(~0u, last_end);
  }

  __device__ __forceinline__ IntervalBounds of_lane(int lane) const {
    IntervalBounds other;
    other.first_begin = __shfl_sync(~0u, first_begin, lane);
    other.last_begin = __shfl_sync(~0u, last_begin, lane);
    other.first_end = __shfl_sync(~0u, first_end, lane);
    other.last_end = __shfl_sync(~0u, last_end, lane);
    return other;
  }
};

// Classifies a tile by the bounds of its rows' intervals, bounds_of(interval) each, so that it may count as visible, or
// as not full, that is not. Lanes may have columns of their own.
template <class BoundsOf>
__device__ __forceinline__ void classify_by_bounds(int c0, int c1, const BoundsOf& bounds_of, bool& full,
                                                   bool& visible) {
  int seen_to = c0;  // all rows see the columns from c0 to here
  visible = false;
#pragma unroll 1
  for (int interval = 0; interval < kIntervals; ++interval) {
    const IntervalBounds bounds = bounds_of(interval);
    visible = visible || (bounds.first_begin <= c1 && c0 < bounds.last_end);
    if (bounds.last_begin <= seen_to) seen_to = max(seen_to, bounds.first_end);
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
      const RowInterval interval = row_interval(row, number, n, t);
      if (interval.empty()) continue;
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
