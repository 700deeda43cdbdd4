// Jagged tensors: where a sequence starts and how long it is, safe for any content of the offsets.
#pragma once
#include "common/types.cuh"

struct Sequence {
  i64 start;    // first row in the (L, ...) tensors
  int rows;     // n
  int targets;  // t
};

// Offsets that decrease, are negative or pass `total_rows`, and target counts outside [0, n], are clamped, so that no
// content of these tensors makes a kernel touch a row outside [0, total_rows).
template <class Offset>
__device__ __forceinline__ Sequence load_sequence(const Offset* offsets, const Offset* num_targets, int index,
                                                  i64 total_rows) {
  const i64 begin = offsets[index];
  const i64 end = offsets[index + 1];
  Sequence sequence;
  sequence.start = min(max(begin, 0ll), total_rows);
  constexpr i64 kMostRows = 0x7fffffff;  // positions within a sequence are int
  sequence.rows = static_cast<int>(min(min(max(end, sequence.start), total_rows) - sequence.start, kMostRows));
  const i64 targets = num_targets == nullptr ? 0 : static_cast<i64>(num_targets[index]);
  sequence.targets = static_cast<int>(min(max(targets, 0ll), static_cast<i64>(sequence.rows)));
  return sequence;
}
