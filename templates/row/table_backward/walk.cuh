// The pass over the rows in the order of a table's keys. The first table's also writes what follows from a row alone.
#pragma once
#include "row/row_gradients.cuh"
#include "row/table_backward/runs.cuh"

template <class Spec, class Config, class Operands, class Row, class Params, int kTable>
class TableWalk {
 public:
  __device__ __forceinline__ explicit TableWalk(const Params& params)
      : params_(params), regions_(params, kTable), inputs_(params) {
    void* data[Sums::kCount];
    i64 strides[Sums::kCount], counts[Sums::kCount];
    Sums::rows(params, data, strides);
    Sums::counts(params, counts);
    table_ = data[kTable];
    stride_ = strides[kTable];
    keys_ = static_cast<u32>(counts[kTable]);
    passes_ = Sums::kSorted ? 0 : KeySort::passes(counts[kTable]);
    if constexpr (kWrites) Operands::row_outputs(params, gradients_.data, gradients_.strides);
  }

  __device__ __forceinline__ void run() {
    const int group = Layout::row_of_cta();
    const i64 groups = static_cast<i64>(gridDim.x) * Layout::kRows, share = (params_.rows + groups - 1) / groups;
    const i64 begin = min((blockIdx.x * Layout::kRows + group) * share, params_.rows);
    const i64 end = min(begin + share, params_.rows);
    RunEnds own;
    const RunParts<kWidth> parts = {nullptr, params_.group_sums + 2ll * blockIdx.x * Layout::kRows * kWidth};
    go_through(begin, end, own, parts, group);
    join(own, parts, group);
  }

  // Of all CTAs: the runs that go on from one to another. A CTA has 32 columns of one part's tail; its warps take turns
  // with the heads behind it.
  __device__ __forceinline__ void finish() {
    constexpr int kWarps = 8, kColumnGroups = ceil_div(kWidth, 32);
    __shared__ __align__(16) unsigned char static_bytes[kWarps * 32 * sizeof(float)];
    float* const shared = reinterpret_cast<float*>(static_bytes);
    const int ctas = *params_.cta_count, part = blockIdx.x / kColumnGroups;
    const int column = blockIdx.x % kColumnGroups * 32 + threadIdx.x % 32, warp = threadIdx.x / 32;
    const RunParts<kWidth> parts = {reinterpret_cast<RunEnds*>(params_.cta_ends), params_.cta_sums};
    if (part >= ctas || parts.ends[part].tail == kNoKey) return;
    const i64 behind = behind_heads(parts, part, ctas);
    float sum = 0;
    if (column < kWidth) {
      if (warp == 0) sum = parts.tail(part)[column];
#pragma unroll 4
      for (i64 other = part + 1 + warp; other < behind; other += kWarps) sum += parts.head(other)[column];
    }
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0 || column >= kWidth) return;
#pragma unroll
    for (int other = 1; other < kWarps; ++other) sum += shared[other * 32 + threadIdx.x];
    Pack<typename Operands::Table, 1> rounded;
    rounded.set({sum});
    const i64 element = parts.ends[part].tail * stride_ + column;
    rounded.store(static_cast<unsigned char*>(table_) + element * Operands::Table::kBytes);
  }

 private:
  using Layout = RowLayout<Spec, Config>;
  using Operand = Inputs<Layout, Operands, Config, Row>;
  using Place = typename Operand::Place;
  using Sums = typename Operands::TableSums;
  static constexpr int kWidth = Spec::kWidth;
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
  __device__ __forceinline__ void go_through(i64 begin, i64 end, RunEnds& own, const RunParts<kWidth>& parts,
                                             int group) {
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
          if (run != kNoKey) end_run(run, began, ends, sums, own, parts, group);
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

  __device__ __forceinline__ void end_run(u32 key, bool began, bool ends, const TableRowSums<Layout>& sums,
                                          RunEnds& own, const RunParts<kWidth>& parts, int group) {
    if (began && ends) return write(key, sums);
    if (began) {
      own.tail = key;
      sums.leave(parts.tail(group));
    } else {
      own.head = key;
      own.closed = ends;
      sums.leave(parts.head(group));
    }
  }

  __device__ __forceinline__ void write(u32 key, const TableRowSums<Layout>& sums) const {
    const i64 element = key * stride_;
    auto* const table = static_cast<unsigned char*>(table_);
    sums.template round_to<typename Operands::Table>(table + element * Operands::Table::kBytes);
  }

  // The parts of a CTA's groups become the CTA's.
  __device__ __forceinline__ void join(const RunEnds& own, RunParts<kWidth> parts, int group) {
    __shared__ __align__(16) unsigned char static_bytes[(Layout::kRows + 1) * sizeof(RunEnds)];
    parts.ends = reinterpret_cast<RunEnds*>(static_bytes);
    RunEnds* const cta = parts.ends + Layout::kRows;
    const bool first = Layout::thread_of_row() == 0;
    if (first) parts.ends[group] = own;
    if (threadIdx.x == 0) *cta = RunEnds();
    __syncthreads();
    const RunParts<kWidth> ctas = {reinterpret_cast<RunEnds*>(params_.cta_ends), params_.cta_sums};
    // A tail, and the first group's head, which is the CTA's.
#pragma unroll 1
    for (int kind = 0; kind < 2; ++kind) {
      const bool tail = kind == 0;
      const u32 key = tail ? own.tail : group == 0 ? own.head : kNoKey;
      if (key == kNoKey) continue;
      TableRowSums<Layout> sums;
      sums.clear();
      sums.add(tail ? parts.tail(group) : parts.head(group));
      const bool closed = (!tail && own.closed != 0) || add_heads(parts, group, Layout::kRows, sums);
      if (tail && closed) {
        write(key, sums);
        continue;
      }
      sums.leave(tail ? ctas.tail(blockIdx.x) : ctas.head(blockIdx.x));
      if (!first) continue;
      if (tail) cta->tail = key;
      if (!tail) cta->head = key;
      if (!tail) cta->closed = closed;
    }
    __syncthreads();
    if (threadIdx.x == 0) ctas.ends[blockIdx.x] = *cta;
    if (blockIdx.x == 0 && threadIdx.x == 0) *params_.cta_count = gridDim.x;
  }

  const Params& params_;
  const KeyRegions regions_;
  Operand inputs_;
  void* table_;
  i64 stride_;  // in elements
  u32 keys_;    // rows of the table
  int passes_;
  RowGradients<Operands> gradients_;
  void* data_[at_least_one(Operands::kRowOutputs)];
  i64 strides_[at_least_one(Operands::kRowOutputs)];
};
