// Jagged tensors: where a sequence starts and how long it is, safe for any content of the offsets.
#pragma once
#include "common/types.cuh"

#ifdef kMaskReads
struct Params;

// The numbers of a sequence's targets and contexts, and its own in the batch; its first row, and the launch, whose
// tensors the mask reads. An int is a number of targets.
struct SequenceCounts {
  int targets;   // t
  int contexts;  // c
  int number;
  const Params* params;
  i64 start;

  SequenceCounts() = default;
  __device__ __forceinline__ SequenceCounts(int t) : targets(t), contexts(0), number(0), params(nullptr), start(0) {}
};

__device__ __forceinline__ SequenceCounts __shfl_sync(unsigned lanes, SequenceCounts own, int lane) {
  own.targets = __shfl_sync(lanes, own.targets, lane);
  own.number = __shfl_sync(lanes, own.number, lane);
  own.start = __shfl_sync(lanes, own.start, lane);
  return own;
}

// An element of the position, of a sequence of n rows; 0 outside of it.
template <class T>
__device__ __forceinline__ i64 mask_row_element(const T* tensor, const SequenceCounts& counts, int n, int position) {
  const int nearest = max(min(position, n - 1), 0);
  const T element = __ldg(tensor + counts.start + nearest);
  return static_cast<u32>(position) < static_cast<u32>(n) ? static_cast<i64>(element) : 0;  // as in row_element()
}

#elifdef kSequenceNumber
// The numbers of a sequence's targets and contexts, and its own in the batch. An int is a number of targets.
struct SequenceCounts {
  int targets;   // t
  int contexts;  // c
  int number;

  SequenceCounts() = default;
  __device__ __forceinline__ SequenceCounts(int t, int c = 0, int b = 0) : targets(t), contexts(c), number(b) {}
};

__device__ __forceinline__ SequenceCounts __shfl_sync(unsigned lanes, const SequenceCounts& counts, int lane) {
  return {__shfl_sync(lanes, counts.targets, lane), __shfl_sync(lanes, counts.contexts, lane),
          __shfl_sync(lanes, counts.number, lane)};
}

#elifdef kNumContexts
// The numbers of a sequence's targets and contexts. A literal 0 is none of either; no other int is one of these.
struct SequenceCounts {
  int targets;   // t
  int contexts;  // c

  struct Nothing;
  SequenceCounts() = default;
  __device__ __forceinline__ SequenceCounts(const Nothing*) : targets(0), contexts(0) {}
  __device__ __forceinline__ SequenceCounts(int t, int c) : targets(t), contexts(c) {}
};

__device__ __forceinline__ SequenceCounts __shfl_sync(unsigned lanes, const SequenceCounts& counts, int lane) {
  return {__shfl_sync(lanes, counts.targets, lane), __shfl_sync(lanes, counts.contexts, lane)};
}

#endif
#ifdef kNumContexts
// The tensors that have them; `targets` may be null, as below.
template <class Offset>
struct CountTensors {
  const Offset* targets;
  const Offset* contexts;
};

#endif
#ifdef kNumberedIntervals
// As below, with the number of the sequence in the batch.
struct RowIntervals {
  const int* first;
  i64 stride;
  int number;

  struct Nothing;
  RowIntervals() = default;
  __device__ __forceinline__ RowIntervals(const Nothing*) : first(nullptr), stride(0), number(0) {}
  __device__ __forceinline__ RowIntervals(const int* numbers, i64 next, int b)
      : first(numbers), stride(next), number(b) {}
};

#elifdef kAttnFunc
// Columns that the rows of a sequence see, by attn_func (attention/operands/intervals.cuh), in place of counts. A
// literal 0 is none.
struct RowIntervals {
  const int* first;  // the first number of the sequence's row 0
  i64 stride;        // from a number of a row to its next one

  struct Nothing;
  RowIntervals() = default;
  __device__ __forceinline__ RowIntervals(const Nothing*) : first(nullptr), stride(0) {}
  __device__ __forceinline__ RowIntervals(const int* numbers, i64 next) : first(numbers), stride(next) {}
};

#endif
#ifdef kAttnFunc
__device__ __forceinline__ RowIntervals __shfl_sync(unsigned, const RowIntervals& own, int) { return own; }

struct IntervalBounds;  // attention/operands/intervals.cuh

#endif
struct Sequence {
  i64 start;    // first row in the (L, ...) tensors
  int rows;     // n
#ifdef kSequenceCounts
  SequenceCounts targets;  // t
#elifdef kAttnFunc
  RowIntervals targets;  // in place of t
#else
  int targets;  // t
#endif
  // Rows [query_begin, rows) are those that q and out have, at `query_start` + row. Where they have all rows these are
  // 0 and `start`. Below 0: so many rows of q lie before the sequence.
  int query_begin;
  i64 query_start;
#ifdef kAttnFunc
  const IntervalBounds* bounds;  // of its Q tiles, where a kernel reads them (attention/operands/interval_bounds.cuh)
  const IntervalBounds* groups;  // the same of groups of Q tiles
#endif
};

// What the tensors say of one sequence, unchecked. Apart from `clamp_words`, so that the loads may run while something
// else is computed.
template <class Offset>
struct SequenceWords {
  Offset begin;
  Offset end;
  Offset targets;
#ifdef kNumContexts
  Offset contexts;
#endif
};

// `num_targets` may be null: no sequence has any.
template <class Offset>
__device__ __forceinline__ SequenceWords<Offset> load_words(const Offset* offsets, const Offset* num_targets,
                                                            int index) {
  return {offsets[index], offsets[index + 1], num_targets == nullptr ? Offset(0) : num_targets[index]};
}

#ifdef kNumContexts
template <class Offset>
__device__ __forceinline__ SequenceWords<Offset> load_words(const Offset* offsets, const CountTensors<Offset>& counts,
                                                            int index) {
  SequenceWords<Offset> words = load_words(offsets, counts.targets, index);
  words.contexts = counts.contexts[index];
  return words;
}

#endif
// Offsets that decrease, are negative or pass `total_rows`, and target counts outside [0, n], are clamped, so that no
// content of these tensors makes a kernel touch a row outside [0, total_rows).
template <class Offset>
__device__ __forceinline__ Sequence clamp_words(const SequenceWords<Offset>& words, i64 total_rows) {
  Sequence sequence;
  sequence.start = min(max(static_cast<i64>(words.begin), 0ll), total_rows);
  constexpr i64 kMaxRows = 0x7fffffff;  // positions within a sequence are int
  const i64 end = min(max(static_cast<i64>(words.end), sequence.start), total_rows);
  sequence.rows = static_cast<int>(min(end - sequence.start, kMaxRows));
#ifdef kNumContexts
  const auto clamp = [&](i64 count) { return static_cast<int>(min(max(count, 0ll), static_cast<i64>(sequence.rows))); };
  sequence.targets = {clamp(words.targets), clamp(words.contexts)};
#elifdef kAttnFunc
  sequence.targets = 0;
#else
  sequence.targets = static_cast<int>(min(max(static_cast<i64>(words.targets), 0ll), static_cast<i64>(sequence.rows)));
#endif
  sequence.query_begin = 0;
  sequence.query_start = sequence.start;
  return sequence;
}

template <class Offset>
__device__ __forceinline__ Sequence load_sequence(const Offset* offsets, const Offset* num_targets, int index,
                                                  i64 total_rows) {
  return clamp_words(load_words(offsets, num_targets, index), total_rows);
}
#ifdef kNumContexts

template <class Offset>
__device__ __forceinline__ Sequence load_sequence(const Offset* offsets, const CountTensors<Offset>& counts, int index,
                                                  i64 total_rows) {
  return clamp_words(load_words(offsets, counts, index), total_rows);
}
#endif
