// Rows that are those of sequences: which sequence a row is of, and which rows of other tensors go with it. Offsets may
// hold anything: a row that is found is one that its tensor has.
#pragma once
#include "common/element.cuh"
#include "row/elements.cuh"

// The last sequence from `first` on, and before `end`, that begins with the row or before it; `first` does. Sequence b
// begins with row first_row(b). Looks close by first.
template <class Sequences, class Params>
__device__ __forceinline__ i64 last_begun(const Params& params, i64 row, i64 first, i64 end) {
  i64 step = 1;
#pragma unroll 1
  while (first + step < end && Sequences::first_row(params, first + step) <= row) {
    first += step;
    step *= 2;
  }
  end = min(end, first + step);
#pragma unroll 1
  while (end - first > 1) {
    const i64 middle = first + (end - first) / 2;
    (Sequences::first_row(params, middle) <= row ? first : end) = middle;
  }
  return first;
}

// The same from the first sequence on, for the lowest row of a warp, whose lanes look at 32 sequences at a time.
template <class Sequences, class Params>
__device__ __forceinline__ i64 last_begun_by_warp(const Params& params, i64 row) {
  i64 first = 0, end = Sequences::count(params);
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  while (end - first > 1) {
    const i64 step = (end - first + 31) / 32, probe = first + lane * step;
    const bool begun = probe < end && Sequences::first_row(params, probe) <= row;
    const int last = 31 - __clz(__ballot_sync(~0u, begun) | 1);
    first += last * step;
    end = min(end, first + step);
  }
  return first;
}

template <class Layout, class Operands>
class Places<Layout, Operands, typename Exists<typename Operands::Sequences>::type> {
  using Sequences = typename Operands::Sequences;

 public:
  template <class Params>
  __device__ __forceinline__ Places(const Params& params, i64 row) {
    place_.set(-1);
    i64 sequence, position;
    if constexpr (Sequences::kUniform) {
      if (row >= params.rows) return;
      const i64 rows = Sequences::rows(params);
      sequence = (row | rows) >> 32 == 0 ? static_cast<u32>(row) / static_cast<u32>(rows) : row / rows;
      position = row - sequence * rows;
      exists_ = sequence < Sequences::count(params);
    } else {
      // Where the lanes of a warp have neighbouring rows, they look for the first one's sequence together.
      const i64 nearest = Layout::kTogether ? last_begun_by_warp<Sequences>(params, __shfl_sync(~0u, row, 0)) : 0;
      if (row >= params.rows) return;
      sequence = last_begun<Sequences>(params, row, nearest, Sequences::count(params));
      position = row - Sequences::first_row(params, sequence);
      exists_ =
          position >= 0 && sequence < Sequences::count(params) && row < Sequences::first_row(params, sequence + 1);
    }
    if (exists_) Sequences::find(params, row, sequence, position, place_);
  }

  // Places of an operator that finds no row to read or write.
  __device__ __forceinline__ Places(i64 row, bool exists) : exists_(exists) { place_.set(exists ? row : -1); }

  // Whether the row is one of a sequence; behind the last one are none.
  __device__ __forceinline__ bool exists() const { return exists_; }
  __device__ __forceinline__ bool has_input(int input, i64) const { return place_.inputs[input] >= 0; }
  __device__ __forceinline__ bool has_output(int output) const { return place_.outputs[output] >= 0; }
  __device__ __forceinline__ i64 input(int input) const { return place_.inputs[input]; }
  __device__ __forceinline__ i64 table(int table) const { return place_.tables[table]; }
  __device__ __forceinline__ i64 output(int output) const { return place_.outputs[output]; }
  __device__ __forceinline__ i64 sum(int sum) const { return place_.sums[sum]; }

  template <class Params, class Elements>
  static __device__ __forceinline__ void set_missing(const Params& params, int input, Elements& elements) {
    elements.fill(Sequences::missing(params, input));
  }

 private:
  bool exists_ = false;
  typename Sequences::Found place_;
};

// Rows of tables: they are in L1 or L2 when many rows find them.
template <class Layout, class Operands>
class TableInputs<Layout, Operands, typename Exists<typename Operands::Tables>::type> {
 public:
  static constexpr int kCount = Operands::Tables::kCount;

  template <u32 kReads, class Params>
  __device__ __forceinline__ void get(const Params& params, const Places<Layout, Operands>& places, int column) {
    const void* data[kCount];
    i64 strides[kCount];
    Operands::Tables::rows(params, data, strides);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((kReads >> i & 1) == 0) continue;
      const i64 row = places.table(i);
      if (row < 0) {
        packs_[i].clear();
        continue;
      }
      const i64 element = row * strides[i] + column;
      packs_[i].template load<false>(static_cast<const unsigned char*>(data[i]) + element * Operands::Table::kBytes);
    }
  }

  __device__ __forceinline__ float operator()(int table, int i) const { return packs_[table][i]; }

 private:
  Pack<typename Operands::Table, Layout::kVector> packs_[kCount];
};
