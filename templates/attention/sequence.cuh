// The attention operators: where a sequence lies in k and v, and which of its rows q and out have.
#pragma once
#include "attention/operands/intervals.cuh"  // where kAttnFunc
#include "common/jagged.cuh"

#ifdef kNumContexts
// The tensors of counts.
template <class Spec, class Params, class Offset>
__device__ __forceinline__ CountTensors<Offset> counts_of(const Params& params, const Offset* contexts) {
  if constexpr (Spec::kNumTargets) {
    return {params.num_targets, contexts};
  } else {
    return {nullptr, contexts};
  }
}
template <class Spec, class Params>
__device__ __forceinline__ auto num_targets_of(const Params& params) {
  return counts_of<Spec>(params, params.num_contexts);
}
#else
// The tensor of num_targets where the operator takes one.
template <class Spec, class Params>
__device__ __forceinline__ auto num_targets_of(const Params& params) {
  if constexpr (Spec::kNumTargets) {
    return params.num_targets;
  } else {
    return static_cast<decltype(params.seq_offsets)>(nullptr);
  }
}
#endif

#ifdef kNumberedIntervals
// As below, of a sequence that knows its number.
template <class Spec, class Params>
__device__ __forceinline__ RowIntervals intervals_of(const Params& params, const Sequence& sequence, int head) {
  const int group = head / (Spec::kHeads / Spec::kAttnFuncHeads);
  return {params.attn_func + (group * params.attn_func_head_stride + sequence.query_start), params.attn_func_row_stride,
          sequence.targets.number};
}

#elifdef kAttnFunc
// The intervals of a head's rows, from the sequence's row 0 on, which q need not have.
template <class Spec, class Params>
__device__ __forceinline__ RowIntervals intervals_of(const Params& params, const Sequence& sequence, int head) {
  const int group = head / (Spec::kHeads / Spec::kAttnFuncHeads);
  return {params.attn_func + (group * params.attn_func_head_stride + sequence.query_start),
          params.attn_func_row_stride};
}

#endif
#ifdef kMaskReads
// Tells a sequence its number in the batch, and where its mask reads operands.
template <class Params>
__device__ __forceinline__ void identify(Sequence& sequence, const Params& params, int index) {
  sequence.targets.number = index;
  sequence.targets.params = &params;
  sequence.targets.start = sequence.start;
}

#elifdef kSequenceNumber
// Tells a sequence its number in the batch.
template <class Params>
__device__ __forceinline__ void identify(Sequence& sequence, const Params&, int index) {
  sequence.targets.number = index;
}

#endif
// Of kDelta, q and out have the last rows of each sequence only. Like the offsets of k and v, those of q are clamped,
// so that nothing they hold leads outside of q and out.
template <class Spec, class Config, class Params>
__device__ __forceinline__ Sequence sequence_of(const Params& params, int index) {
  Sequence sequence = load_sequence(params.seq_offsets, num_targets_of<Spec>(params), index, params.total_rows);
  if constexpr (Config::kDelta) {
    i64 first = static_cast<i64>(index) * params.max_query_rows, end = first + params.max_query_rows;
    if constexpr (Config::kJaggedQueries) {
      first = params.seq_offsets_q[index];
      end = params.seq_offsets_q[index + 1];
    }
    first = min(max(first, 0ll), params.total_query_rows);
    end = min(max(end, first), params.total_query_rows);
    sequence.query_begin = sequence.rows - static_cast<int>(min(end - first, 0x7fffffffll));
    sequence.query_start = first - sequence.query_begin;
  }
#ifdef kSequenceNumber
  identify(sequence, params, index);
#endif
#ifdef kAttnFunc
  sequence.targets = intervals_of<Spec>(params, sequence, 0);
#endif
  return sequence;
}

// The first of the sequence's rows that q has.
__device__ __forceinline__ int first_query_row(const Sequence& sequence) { return max(sequence.query_begin, 0); }

// No sequence has more rows.
template <class Config, class Params>
__device__ __forceinline__ int max_sequence_rows(const Params& params) {
  if constexpr (Config::kDelta) {
    return params.max_seq_len;
  } else {
    return params.max_query_rows;
  }
}

// Rows of q before their sequence see nothing: the threads of a CTA write zeroes to so many columns of those rows. A
// row of the tensor is a row of q.
template <int kColumns, class T>
__device__ __forceinline__ void clear_rows_before(const Sequence& sequence, T* tensor, i64 row_stride) {
  T* const first = tensor + (sequence.query_start + sequence.query_begin) * row_stride;
  const i64 elements = static_cast<i64>(max(-sequence.query_begin, 0)) * kColumns;
  for (i64 i = threadIdx.x; i < elements; i += blockDim.x) first[i / kColumns * row_stride + i % kColumns] = T(0);
}
