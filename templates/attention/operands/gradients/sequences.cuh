// Attention backward: the gradient of an operand with an element for each sequence, by kernels of its own that follow
// the one of q, k and v.
//
// A CTA has 64 rows of a sequence, as in rows.cuh: what their pairs add up to goes to params.sequence_sums, where a
// warp for each sequence finds the sums of its tiles. No atomic additions, so that every run gives the same bits.
#pragma once
#include "attention/operands/gradients/rows.cuh"

template <class Slopes>
struct SequenceGradient {
  // One CTA per (sequence, tile of rows).
  template <class Spec, class Config, class Params>
  static __device__ __forceinline__ void run(const Params& params) {
    using namespace operand_gradients;
    __shared__ __align__(128) unsigned char static_bytes[kStaticBytes];
    const u32 tiles = ceil_div(max_sequence_rows<Config>(params), kTileSize);
    const int index = static_cast<int>(blockIdx.x / tiles);
    const Sequence sequence = sequence_of<Spec, Config>(params, index);
    const int row0 = first_query_row(sequence) + static_cast<int>(blockIdx.x % tiles) * kTileSize;
    if (row0 >= sequence.rows) return;
    float sums[2] = {0.0f, 0.0f};
    if constexpr (Slopes::kByRow) {
      SlopeSums<Spec, Config, Params, Slopes, false> by_row(params, sequence, row0, 0, Spec::kHeads, sums);
      TilePairs<Spec, Params>(params, sequence, index, shared_address(static_bytes), row0).run(by_row);
    }
    float sum = sums[0] + sums[1];
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    auto* const partials = reinterpret_cast<float*>(static_bytes);
    __syncthreads();  // the buffers are no longer read
    if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) sum += partials[warp];
    params.sequence_sums[blockIdx.x] = sum;
  }

  // One warp per sequence, behind run().
  template <class Spec, class Config, class Params>
  static __device__ __forceinline__ void add(const Params& params) {
    using namespace operand_gradients;
    const i64 index = blockIdx.x, first = index * ceil_div(max_sequence_rows<Config>(params), kTileSize);
    const Sequence sequence = sequence_of<Spec, Config>(params, static_cast<int>(index));
    const int rows = sequence.rows - first_query_row(sequence);
    const int tiles = ceil_div(min(rows, max_sequence_rows<Config>(params)), kTileSize);
    float sum = 0.0f;
    for (int tile = static_cast<int>(threadIdx.x); tile < tiles; tile += 32) sum += params.sequence_sums[first + tile];
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x == 0) store_gradient<Slopes>(params, [=](auto) { return index; }, sum);
  }
};
