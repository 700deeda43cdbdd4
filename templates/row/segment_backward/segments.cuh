// The pass over rows whose sequence is the row of a table that they find: neighbouring rows are a segment, and have a
// sum. Each group of threads has neighbouring rows, which begin and end in the middle of segments (row/runs.cuh).
#pragma once
#include "row/ring.cuh"
#include "row/row_gradients.cuh"
#include "row/runs.cuh"
#include "row/sequences.cuh"

// The parts are those of a ring's groups. Where a warp has several rows at a time, its lanes share out a part's.
template <class Layout, class Waiting>
struct PartOfGroup {
  static constexpr int kParts = Waiting::kGroups;
  static __device__ __forceinline__ int part() { return static_cast<int>(threadIdx.x) / Waiting::kGroupThreads; }
  static __device__ __forceinline__ bool leads() { return threadIdx.x % Waiting::kGroupThreads == 0; }
  static __device__ __forceinline__ bool writes() { return Waiting::row_of_group() == 0; }
};

template <class Spec, class Config, class Operands, class Row, class Params>
class SegmentWalk {
 public:
  __device__ __forceinline__ explicit SegmentWalk(const Params& params)
      : params_(params), operand_(params), runs_(params), batch_(Sequences::count(params)) {
    if (batch_ > 0) last_ = max(min(Sequences::first_row(params, batch_), params.rows), i64{0});
    if (batch_ > 0) first_ = max(min(Sequences::first_row(params, 0), last_), i64{0});
    if constexpr (kWrites) Operands::row_outputs(params, gradients_.data, gradients_.strides);
  }

  __device__ __forceinline__ void run() {
    const i64 parts = static_cast<i64>(gridDim.x) * Part::kParts, share = (last_ - first_ + parts - 1) / parts;
    const i64 begin = min(first_ + (static_cast<i64>(blockIdx.x) * Part::kParts + Part::part()) * share, last_);
    go_through(begin, min(begin + share, last_));
    clear_empty();
    runs_.join();
  }

  // Finishes the runs of all CTAs.
  __device__ __forceinline__ void finish() const { runs_.finish(); }

 private:
  using Layout = RowLayout<Spec, Config>;
  using Operand = Inputs<Layout, Operands, Config, Row>;
  using Sequences = typename Operands::Sequences;
  using Sums = typename Operands::TableSums;
  using Waiting = RowRing<Layout, Operands, Config>;
  using Part = PartOfGroup<Layout, Waiting>;
  using Runs = RunSums<Part, Layout, Operands, 0, Spec::kWidth, Params>;
  static constexpr bool kWrites = Operands::kRowOutputs > 0;
  static_assert(Sums::kCount == 1 && Sums::kSorted, "one table, whose rows are those of the sequences");

  // First row of a sequence, among the rows that exist, whatever the offsets say.
  __device__ __forceinline__ i64 first_row(i64 sequence) const {
    return max(min(Sequences::first_row(params_, sequence), last_), first_);
  }

  // Rows of the table that no row finds, in turns of all parts.
  __device__ __forceinline__ void clear_empty() const {
    i64 counts[1];
    Sums::counts(params_, counts);
    TableRowSums<Layout> zeros;
    zeros.clear();
    const i64 parts = static_cast<i64>(gridDim.x) * Part::kParts;
#pragma unroll 1
    for (i64 key = static_cast<i64>(blockIdx.x) * Part::kParts + Part::part(); key < counts[0]; key += parts) {
      if (key >= batch_ || first_row(key + 1) <= first_row(key)) runs_.write(static_cast<u32>(key), zeros);
    }
  }

  // The row of the table that those of a sequence find.
  __device__ __forceinline__ u32 key(i64 sequence, i64 row) const {
    if (sequence >= batch_) return kNoKey;
    typename Sequences::Found found;
    Sequences::find(params_, row, sequence, row - Sequences::first_row(params_, sequence), found);
    return found.sums[0] < 0 ? kNoKey : static_cast<u32>(found.sums[0]);
  }

  __device__ __forceinline__ void go_through(i64 begin, i64 end) {
    Waiting ring(params_, begin, end, Waiting::kGroupRows);
    if (begin >= end) return;
    i64 sequence = last_begun_by_warp<Sequences>(params_, begin);
    i64 behind = max(first_row(sequence + 1), begin);  // the segment's last row
    bool began = first_row(sequence) == begin;         // in this part
    TableRowSums<Layout> sums;
    sums.clear();
#pragma unroll 1
    for (i64 tile = begin; tile < end; tile += Waiting::kGroupRows) {
      const i64 row = tile + Waiting::row_of_group(), tile_end = min(tile + Waiting::kGroupRows, end);
      typename Operand::Row held;
      ring.take(row < end, held);
      i64 from = tile;
#pragma unroll 1
      while (true) {
        if (row >= from && row < min(behind, tile_end)) add_row(row, held, sums);
        if (behind > tile_end) break;
        end_segment(key(sequence, from), began, true, sums);
        from = behind;
        began = true;
        sums.clear();
        // Sequences without rows lie between.
        do ++sequence;
        while (sequence < batch_ && first_row(sequence + 1) <= from);
        behind = sequence < batch_ ? first_row(sequence + 1) : end + 1;
        if (from >= tile_end) break;
      }
    }
    const bool over = began && (sequence >= batch_ || first_row(sequence) >= end);
    if (!over) end_segment(key(sequence, end - 1), began, false, sums);
  }

  __device__ __forceinline__ void add_row(i64 row, const typename Operand::Row& held, TableRowSums<Layout>& sums) {
    follow_row<Layout, Operands, Row, kWrites>(
        params_, operand_, row, held, gradients_,
        [&](int chunk, int i, const float* summands) { sums.elements[chunk][i] += summands[0]; });
  }

  // Lanes of a warp that have the same columns have other rows of the part.
  __device__ __forceinline__ void end_segment(u32 key, bool began, bool ends, TableRowSums<Layout>& sums) {
#pragma unroll
    for (int offset = Layout::kLanesPerRow; offset < 32; offset *= 2) {
#pragma unroll
      for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
#pragma unroll
        for (int i = 0; i < Layout::kVector; ++i)
          sums.elements[chunk][i] += __shfl_xor_sync(~0u, sums.elements[chunk][i], offset);
      }
    }
    if (key != kNoKey) runs_.end(key, began, ends, sums);
  }

  const Params& params_;
  Operand operand_;
  Runs runs_;
  const i64 batch_;
  i64 first_ = 0, last_ = 0;  // the rows of all sequences, and what is behind
  RowGradients<Operands> gradients_;
};
