// The pass over the rows in the order of a table's keys. The first table's also writes what follows from each row alone.
#pragma once
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
    if constexpr (kWrites) Operands::row_outputs(params, data_, strides_);
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

  // Of all CTAs: the runs that go on from one to another. A group of threads has the part of one CTA.
  __device__ __forceinline__ void finish() {
    const i64 ctas = *params_.cta_count;
    const RunParts<kWidth> parts = {reinterpret_cast<RunEnds*>(params_.cta_ends), params_.cta_sums};
    const i64 part = static_cast<i64>(blockIdx.x) * Layout::kRows + Layout::row_of_cta();
    if (part >= ctas || parts.ends[part].tail == kNoKey) return;
    RunSums<Layout> sums;
    sums.clear();
    sums.add(parts.tail(part));
    add_heads(parts, part, ctas, sums);
    write(parts.ends[part].tail, sums);
  }

 private:
  using Layout = RowLayout<Spec, Config>;
  using Operand = Inputs<Layout, Operands, Config, Row>;
  using Place = typename Operand::Place;
  using Sums = typename Operands::TableSums;
  static constexpr int kWidth = Spec::kWidth;
  static constexpr bool kWrites = kTable == 0 && Operands::kRowOutputs > 0;
  static constexpr int kOutputs = Operands::kRowOutputs + Sums::kCount;
  static constexpr int kBatch = Layout::kChunks * Layout::kVector <= 8 ? 4 : Layout::kChunks * Layout::kVector <= 16 ? 2 : 1;

  // The i-th row in order.
  __device__ __forceinline__ i64 row_at(i64 i) const {
    if constexpr (Sums::kSorted) return i;
    return regions_.row(passes_, i);
  }
  __device__ __forceinline__ u32 key_at(i64 i) const { return regions_.keys[row_at(i)]; }

  __device__ __forceinline__ void go_through(i64 begin, i64 end, RunEnds& own, const RunParts<kWidth>& parts, int group) {
    const u32 before = begin > 0 && begin < end ? key_at(begin - 1) : kNoKey;
    u32 run = kNoKey;
    bool began = false;  // in this part
    RunSums<Layout> sums;
    sums.clear();
    for (i64 first = begin; first < end; first += kBatch) {
      typename Operand::Row held[kBatch];
      i64 rows[kBatch];
      u32 keys[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const bool mine = first + i < end;
        rows[i] = row_at(mine ? first + i : first);
        keys[i] = mine ? regions_.keys[rows[i]] : kNoKey;
        inputs_.load(params_, Place(rows[i], keys[i] <= keys_), held[i]);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (keys[i] > keys_) continue;  // of no sequence: these are last
        const u32 key = keys[i] < keys_ ? keys[i] : kNoKey;
        if (key != run) {
          if (run != kNoKey) end_run(run, began, true, sums, own, parts, group);
          began = first + i > begin || key != before;
          run = key;
          sums.clear();
        }
        add_row(rows[i], held[i], sums);
      }
    }
    if (run == kNoKey) return;  // nothing, or rows that found none
    const bool ends = end >= params_.rows || key_at(end) != run;
    end_run(run, began, ends, sums, own, parts, group);
  }

  __device__ __forceinline__ void add_row(i64 row, const typename Operand::Row& held, RunSums<Layout>& sums) {
    const typename Row::Statistics statistics = {};
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      if (!Layout::has(chunk)) continue;
      typename Operand::Chunk inputs;
      inputs_.template get<Row::kReads[0]>(params_, held, row, Place(row, true), chunk, inputs);
      float elements[at_least_one(Operands::kRowOutputs)][Layout::kVector];
#pragma unroll
      for (int i = 0; i < Layout::kVector; ++i) {
        float in[Operand::Chunk::kCount], out[kOutputs];
        inputs.get(i, in);
        Row::outputs(in, statistics, params_, out);
#pragma unroll
        for (int output = 0; output < Operands::kRowOutputs; ++output) elements[output][i] = out[output];
        sums.elements[chunk][i] += out[Operands::kRowOutputs + kTable];
      }
      if constexpr (kWrites) {
#pragma unroll
        for (int output = 0; output < Operands::kRowOutputs; ++output) {
          Pack<typename Operands::Data, Layout::kVector> rounded;
          rounded.set(elements[output]);
          const i64 element = row * strides_[output] + Layout::column(chunk);
          rounded.store(static_cast<unsigned char*>(data_[output]) + element * Operands::Data::kBytes);
        }
      }
    }
  }

  __device__ __forceinline__ void end_run(u32 key, bool began, bool ends, const RunSums<Layout>& sums, RunEnds& own,
                                          const RunParts<kWidth>& parts, int group) {
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

  __device__ __forceinline__ void write(u32 key, const RunSums<Layout>& sums) const {
    const i64 element = key * stride_;
    sums.template round_to<typename Operands::Table>(static_cast<unsigned char*>(table_) + element * Operands::Table::kBytes);
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
    RunSums<Layout> sums;
    if (own.tail != kNoKey) {
      sums.clear();
      sums.add(parts.tail(group));
      if (add_heads(parts, group, Layout::kRows, sums)) {
        write(own.tail, sums);
      } else {
        sums.leave(ctas.tail(blockIdx.x));
        if (first) cta->tail = own.tail;
      }
    }
    if (group == 0 && own.head != kNoKey) {
      sums.clear();
      sums.add(parts.head(0));
      const bool closed = own.closed || add_heads(parts, 0, Layout::kRows, sums);
      sums.leave(ctas.head(blockIdx.x));
      if (first) {
        cta->head = own.head;
        cta->closed = closed;
      }
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
  void* data_[at_least_one(Operands::kRowOutputs)];
  i64 strides_[at_least_one(Operands::kRowOutputs)];
};
