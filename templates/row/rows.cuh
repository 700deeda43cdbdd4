// One pass over the rows of a tensor. A CTA takes as many rows at a time as its threads are shared out to. With the
// persistent schedule it goes on with those that lie a grid's rows further, and loads them while it computes the ones
// before: into registers, or, with more than two stages, into shared memory.
//
// `Row` is the operator: in each round it says what is summed over a row, and what follows from the sums; then what is
// written (docs/generated-source.md). `Operands` are its tensors.
#pragma once
#include "common/max_nan.cuh"  // where max_nan
#include "common/precise.cuh"  // where precise_rsqrt
#include "common/precise.cuh"  // where precise_tanh
#include "common/precise.cuh"  // where precise_tanh_of_half
#include "row/elements.cuh"
#include "row/reduce.cuh"

// Takes the place of sums over rows where there are none.
struct NoRowSums {
  static constexpr int kCount = 0;
  __device__ __forceinline__ void add(int, int, int, float) {}
};

// Where rows wait in shared memory (ring.cuh).
template <class Layout, class Operands, class Config>
class RowRing;

template <class Spec, class Config, class Operands, class Row, class RowSums, class Params>
class Rows {
 public:
  __device__ __forceinline__ explicit Rows(const Params& params) : params_(params), inputs_(params) {
    if constexpr (Operands::kRowOutputs > 0) Operands::row_outputs(params, data_, strides_);
  }

  __device__ __forceinline__ void run() {
    i64 first = static_cast<i64>(blockIdx.x) * Layout::kRows;
    const int mine = Layout::row_of_cta();
    if constexpr (!Config::kSchedulePersistent) {
      typename Operand::Row held;
      const Place place(params_, first + mine);
      load_now(place, held);
      compute(first + mine, place, held);
      return;
    }
    const i64 step = static_cast<i64>(gridDim.x) * Layout::kRows;
    if constexpr (kInShared) {
      using Waiting = RowRing<Layout, Operands, Config>;
      Waiting ring(params_, first + Waiting::group() * Waiting::kGroupRows, params_.rows, step);
      for (; first < params_.rows; first += step) {
        const Place place(params_, first + mine);
        typename Waiting::Row row;
        ring.take(place.exists(), row);
        compute(first + mine, place, row);
        ring.give_back();
      }
      return;
    }
    typename Operand::Row held, next;
    if constexpr (kAhead) inputs_.load(params_, Place(params_, first + mine), next);
    for (; first < params_.rows; first += step) {
      const Place place(params_, first + mine);
      if constexpr (kAhead) {
        held = next;
        inputs_.load(params_, Place(params_, first + step + mine), next);
      } else {
        load_now(place, held);
      }
      compute(first + mine, place, held);
    }
  }

  __device__ __forceinline__ RowSums& sums() { return row_sums_; }

 private:
  using Layout = RowLayout<Spec, Config>;
  using Operand = Inputs<Layout, Operands, Config, Row>;
  using Place = typename Operand::Place;
  using Reducer = PartReducer<Layout, Operands, Row::kMaxSums>;
  using Statistics = typename Row::Statistics[Reducer::kParts];
  static constexpr bool kInShared = Config::kStages > 2;  // as kRegisterStages of resources.h
  static constexpr bool kAhead = Config::kStages == 2;
  static constexpr int kInputs = Operand::Chunk::kCount;
  static constexpr int kOutputs = Operands::kRowOutputs + RowSums::kCount;

  __device__ __forceinline__ void load_now(const Place& place, typename Operand::Row& held) const {
    if constexpr (Config::kHoldRow != 0) inputs_.load(params_, place, held);
  }

  // Reads a row in shared memory anew, so that the compiler keeps neither its elements nor what follows from them in
  // registers.
  template <class Held>
  static __device__ __forceinline__ void read_anew() {
    if constexpr (Held::kInShared) __syncwarp();
  }

  template <class Held>
  __device__ __forceinline__ void compute(i64 row, const Place& place, const Held& held) {
    Statistics statistics;
    sum_up<0>(held, row, place, statistics);
    write(held, row, place, statistics);
  }

  template <int kRound, class Held>
  __device__ __forceinline__ void sum_up(const Held& held, i64 row, const Place& place, Statistics& statistics) {
    if constexpr (kRound < Row::kRounds) {
      constexpr int kSums = Row::kSums[kRound];
      read_anew<Held>();
      float sums[Reducer::kParts][kSums] = {}, odd[Reducer::kParts][kSums] = {};  // two chains of additions
#pragma unroll
      for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
        if (!Layout::has(chunk)) continue;
        const int part = Reducer::part(chunk);
        typename Operand::Chunk inputs;
        inputs_.template get<Row::kReads[kRound]>(params_, held, row, place, chunk, inputs);
#pragma unroll
        for (int i = 0; i < Layout::kVector; ++i) {
          float in[kInputs], summands[kSums];
          inputs.get(i, in);
          Row::template summands<kRound>(in, statistics[part], params_, summands);
#pragma unroll
          for (int sum = 0; sum < kSums; ++sum) (i % 2 == 0 ? sums : odd)[part][sum] += summands[sum];
        }
      }
#pragma unroll
      for (int part = 0; part < Reducer::kParts; ++part) {
#pragma unroll
        for (int sum = 0; sum < kSums; ++sum) sums[part][sum] += odd[part][sum];
      }
      reducer_.add_up(sums);
#pragma unroll
      for (int part = 0; part < Reducer::kParts; ++part)
        Row::template statistics<kRound>(sums[part], params_, statistics[part]);
      sum_up<kRound + 1>(held, row, place, statistics);
    }
  }

  template <class Held>
  __device__ __forceinline__ void write(const Held& held, i64 row, const Place& place, const Statistics& statistics) {
    const bool exists = place.exists();
    read_anew<Held>();
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      if (!exists || !Layout::has(chunk)) continue;
      typename Operand::Chunk inputs;
      inputs_.template get<Row::kReads[Row::kRounds]>(params_, held, row, place, chunk, inputs);
      float elements[at_least_one(Operands::kRowOutputs)][Layout::kVector];
#pragma unroll
      for (int i = 0; i < Layout::kVector; ++i) {
        float in[kInputs], out[kOutputs];
        inputs.get(i, in);
        Row::outputs(in, statistics[Reducer::part(chunk)], params_, out);
#pragma unroll
        for (int output = 0; output < Operands::kRowOutputs; ++output) elements[output][i] = out[output];
#pragma unroll
        for (int sum = 0; sum < RowSums::kCount; ++sum) row_sums_.add(sum, chunk, i, out[Operands::kRowOutputs + sum]);
      }
#pragma unroll
      for (int output = 0; output < Operands::kRowOutputs; ++output) {
        Pack<typename Operands::Data, Layout::kVector> rounded;
        rounded.set(elements[output]);
        if (!place.has_output(output)) continue;
        const i64 first = place.output(output) * strides_[output] + Layout::column(0);  // of the thread's elements
        unsigned char* const to = static_cast<unsigned char*>(data_[output]) + first * Operands::Data::kBytes;
        rounded.store(to + Layout::columns_to(chunk) * Operands::Data::kBytes);
      }
    }
  }

  const Params& params_;
  Operand inputs_;
  void* data_[at_least_one(Operands::kRowOutputs)];
  i64 strides_[at_least_one(Operands::kRowOutputs)];  // in elements
  Reducer reducer_;
  RowSums row_sums_;
};
