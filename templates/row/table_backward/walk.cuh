// The pass over the rows in the order of a table's keys. The first table's also writes what follows from a row alone.
#pragma once
#include "row/row_gradients.cuh"
#include "row/runs.cuh"
#include "row/table_backward/keys.cuh"

template <class Spec, class Config, class Operands, class Row, class Params, int kTable>
class TableWalk {
 public:
  __device__ __forceinline__ explicit TableWalk(const Params& params)
      : params_(params), regions_(params, kTable), inputs_(params), runs_(params) {
    i64 counts[Sums::kCount];
    Sums::counts(params, counts);
    keys_ = static_cast<u32>(counts[kTable]);
    passes_ = Sums::kSorted ? 0 : KeySort::passes(counts[kTable]);
    if constexpr (kWrites) Operands::row_outputs(params, gradients_.data, gradients_.strides);
  }

  __device__ __forceinline__ void run() {
    const int group = Layout::row_of_cta();
    const i64 groups = static_cast<i64>(gridDim.x) * Layout::kRows, share = (params_.rows + groups - 1) / groups;
    const i64 begin = min((blockIdx.x * Layout::kRows + group) * share, params_.rows);
    const i64 end = min(begin + share, params_.rows);
    go_through(begin, end);
    runs_.join();
  }

  // Finishes the runs of all CTAs.
  __device__ __forceinline__ void finish() const { runs_.finish(); }

 private:
  using Layout = RowLayout<Spec, Config>;
  using Operand = Inputs<Layout, Operands, Config, Row>;
  using Place = typename Operand::Place;
  using Sums = typename Operands::TableSums;
  using Runs = RunSums<PartOfRowThreads<Layout>, Layout, Operands, kTable, Spec::kWidth, Params>;
  static constexpr bool kWrites = kTable == 0 && Operands::kRowOutputs > 0;
  static constexpr int kAhead = Config::kRowsAhead;

  // The i-th row in order.
  __device__ __forceinline__ i64 row_at(i64 i) const {
    if constexpr (Sums::kSorted) return i;
    return regions_.row(passes_, i);
  }
  __device__ __forceinline__ u32 key_at(i64 i) const { return regions_.keys[row_at(i)]; }

  // Several rows at a time, whose loads are under way together. Where they are all of the run they are added as they
  // are; else they are looked at one by one, and loaded again.
  __device__ __forceinline__ void go_through(i64 begin, i64 end) {
    if (begin >= end) return;
    const i64 last = params_.rows - 1;
    i64 rows[kAhead];
    u32 keys[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      rows[i] = row_at(min(begin + i, last));
      keys[i] = regions_.keys[rows[i]];
    }
    const u32 before = begin > 0 ? key_at(begin - 1) : kNoKey;
    u32 run = kNoKey;
    bool began = false;  // in this part
    TableRowSums<Layout> sums;
    sums.clear();
#pragma unroll 1
    for (i64 first = begin;; first += kAhead) {
      typename Operand::Row held[kAhead];
      i64 now[kAhead];
      bool alike = first + kAhead <= end && run != kNoKey;
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        inputs_.load(params_, Place(rows[i], true), held[i]);
        now[i] = rows[i];
        alike = alike && keys[i] == run;
      }
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        rows[i] = row_at(min(first + kAhead + i, last));
        keys[i] = regions_.keys[rows[i]];
      }
      if (alike) {
#pragma unroll
        for (int i = 0; i < kAhead; ++i) add_row(now[i], held[i], sums);
        continue;
      }
#pragma unroll 1
      for (i64 i = first; i < first + kAhead; ++i) {
        const i64 row = row_at(min(i, last));
        const u32 found = regions_.keys[row];
        const bool over = i >= end || found > keys_;  // rows of no sequence are behind all others
        const u32 key = over || found >= keys_ ? kNoKey : found;
        if (key != run) {
          const bool ends = i < end || i >= params_.rows || found != run;
          if (run != kNoKey) runs_.end(run, began, ends, sums);
          began = i > begin || key != before;
          run = key;
          sums.clear();
        }
        if (over) return;
        typename Operand::Row again;
        inputs_.load(params_, Place(row, true), again);
        add_row(row, again, sums);
      }
    }
  }

  __device__ __forceinline__ void add_row(i64 row, const typename Operand::Row& held, TableRowSums<Layout>& sums) {
    follow_row<Layout, Operands, Row, kWrites>(
        params_, inputs_, row, held, gradients_,
        [&](int chunk, int i, const float* summands) { sums.elements[chunk][i] += summands[kTable]; });
  }

  const Params& params_;
  const KeyRegions regions_;
  Operand inputs_;
  Runs runs_;
  u32 keys_;  // rows of the table
  int passes_;
  RowGradients<Operands> gradients_;
};
