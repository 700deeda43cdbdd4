// Results that follow from a row alone in the backward direction of operators with tables: its gradients, which are
// written, and what it adds to each table.
#pragma once
#include "row/elements.cuh"

// Where the gradients of rows go.
template <class Operands>
struct RowGradients {
  void* data[at_least_one(Operands::kRowOutputs)];
  i64 strides[at_least_one(Operands::kRowOutputs)];  // in elements
};

// Writes them where there are any and kWrites says so, and calls add(chunk, i, summands) for element i of each chunk of
// the thread, with a summand of each table.
template <class Layout, class Operands, class Row, bool kWrites, class Operand, class Params, class Add>
__device__ __forceinline__ void follow_row(const Params& params, const Operand& operand, i64 row,
                                           const typename Operand::Row& held, const RowGradients<Operands>& gradients,
                                           const Add& add) {
  const typename Row::Statistics statistics = {};
#pragma unroll
  for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
    if (!Layout::has(chunk)) continue;
    typename Operand::Chunk inputs;
    operand.template get<Row::kReads[0]>(params, held, row, typename Operand::Place(row, true), chunk, inputs);
    float elements[at_least_one(Operands::kRowOutputs)][Layout::kVector];
#pragma unroll
    for (int i = 0; i < Layout::kVector; ++i) {
      float in[Operand::Chunk::kCount], out[Operands::kRowOutputs + Operands::TableSums::kCount];
      inputs.get(i, in);
      Row::outputs(in, statistics, params, out);
#pragma unroll
      for (int output = 0; output < Operands::kRowOutputs; ++output) elements[output][i] = out[output];
      add(chunk, i, out + Operands::kRowOutputs);
    }
    if constexpr (kWrites) {
#pragma unroll
      for (int output = 0; output < Operands::kRowOutputs; ++output) {
        Pack<typename Operands::Data, Layout::kVector> rounded;
        rounded.set(elements[output]);
        const i64 element = row * gradients.strides[output] + Layout::column(chunk);
        rounded.store(static_cast<unsigned char*>(gradients.data[output]) + element * Operands::Data::kBytes);
      }
    }
  }
}
