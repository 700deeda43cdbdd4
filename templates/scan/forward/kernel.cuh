// Prefix sums of integers: offsets[i] is the sum of the lengths before i, the last one that of all. Sums wrap.
//
// A CTA has a chunk of neighbouring elements, which is whole tiles. Where one tile is all there is, kernel_main is the
// whole launch. Elsewhere it adds up each chunk, and scan_chunks, which follows, begins with what chunks before its own
// have together.
#include "common/types.cuh"

template <class Config>
struct ScanLayout {
  static constexpr int kWarps = Config::kWarps, kThreads = 32 * kWarps;
  static constexpr int kItems = Config::kItemsPerThread;
  static constexpr int kTile = kThreads * kItems;

  // There is one offset more than there are lengths.
  static __device__ __forceinline__ i64 chunk(i64 rows) {
    const i64 tiles = (rows + kTile) / kTile;
    return (tiles + gridDim.x - 1) / gridDim.x * kTile;
  }
};

// Sums over all threads, for all of them. Shared memory holds one T for each warp.
template <class Layout, class T>
__device__ __forceinline__ T sum_of_block(T value, T* of_warps) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  T sum = 0;
#pragma unroll
  for (int warp = 0; warp < Layout::kWarps; ++warp) sum += of_warps[warp];
  __syncthreads();
  return sum;
}

// Offsets of [begin, end), the first of which is `before`. Lanes have neighbouring elements, and a warp 32 at a time.
template <class Layout, class T>
__device__ __forceinline__ void scan_range(const T* lengths, T* offsets, i64 rows, i64 begin, i64 end, T before,
                                           T* of_warps) {
  constexpr int kItems = Layout::kItems;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll 1
  for (i64 tile = begin; tile < end; tile += Layout::kTile) {
    const i64 first = tile + warp * 32 * kItems + lane;
    T items[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) items[k] = first + 32 * k < rows ? lengths[first + 32 * k] : 0;
    T sum = 0;  // of the warp so far
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const T own = items[k];
      T inclusive = own;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(~0u, inclusive, step);
        if (lane >= step) inclusive += other;
      }
      items[k] = sum + inclusive - own;
      sum += __shfl_sync(~0u, inclusive, 31);
    }
    if (lane == 0) of_warps[warp] = sum;
    __syncthreads();
    T own = 0;
#pragma unroll
    for (int other = 0; other < Layout::kWarps; ++other) {
      if (other == warp) own = before;
      before += of_warps[other];
    }
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (first + 32 * k <= rows) offsets[first + 32 * k] = own + items[k];
    }
    __syncthreads();
  }
}

template <class Spec, class Config, class Params>
__device__ void kernel_main(const Params& params) {
  using Layout = ScanLayout<Config>;
  using T = ScanElement;
  __shared__ __align__(16) unsigned char static_bytes[Layout::kWarps * sizeof(T)];
  T* const of_warps = reinterpret_cast<T*>(static_bytes);
  const i64 rows = params.rows;
  if (gridDim.x == 1) {
    scan_range<Layout, T>(params.lengths, params.offsets, rows, 0, rows + 1, 0, of_warps);
    return;
  }
  const i64 chunk = Layout::chunk(rows), begin = blockIdx.x * chunk, end = min(begin + chunk, rows);
  T sum = 0;
#pragma unroll Layout::kItems
  for (i64 i = begin + threadIdx.x; i < end; i += Layout::kThreads) sum += params.lengths[i];
  sum = sum_of_block<Layout>(sum, of_warps);
  if (threadIdx.x == 0) params.chunk_sums[blockIdx.x] = sum;
}

template <class Spec, class Config, class Params>
__device__ void scan_chunks(const Params& params) {
  using Layout = ScanLayout<Config>;
  using T = ScanElement;
  __shared__ __align__(16) unsigned char static_bytes[Layout::kWarps * sizeof(T)];
  T* const of_warps = reinterpret_cast<T*>(static_bytes);
  const i64 rows = params.rows, chunk = Layout::chunk(rows), begin = blockIdx.x * chunk;
  T before = 0;
  for (u32 earlier = threadIdx.x; earlier < blockIdx.x; earlier += Layout::kThreads)
    before += params.chunk_sums[earlier];
  before = sum_of_block<Layout>(before, of_warps);
  scan_range<Layout, T>(params.lengths, params.offsets, rows, begin, min(begin + chunk, rows + 1), before, of_warps);
}
