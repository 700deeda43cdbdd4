// Steps before sums over the rows that found a row of a table: for each row the number of that row, its key, and the
// order of the rows by key. Rows of the same key stay in order, so the same call adds them up in the same order.
//
// Sorting is by two digits of a key at most, the lower one first. A CTA has a chunk of rows: it counts their digits,
// and when it knows how many rows of all chunks come before its own, it puts them where they belong.
#pragma once
#include "row/sequences.cuh"

struct KeySort {
  static constexpr int kBits = 11, kDigits = 1 << kBits;
  static constexpr int kWarps = 4, kThreads = 32 * kWarps;
  static constexpr int kMaxChunks = 256;
  static constexpr int kMinRows = 512;  // of a chunk

  static __device__ __forceinline__ int chunks(i64 rows) {
    return static_cast<int>(min(static_cast<i64>(kMaxChunks), (rows + kMinRows - 1) / kMinRows));
  }
  // Rows of a chunk: whole groups of 32 for each warp.
  static __device__ __forceinline__ i64 chunk_rows(i64 rows) {
    const i64 each = (rows + chunks(rows) - 1) / chunks(rows);
    return (each + kThreads - 1) / kThreads * kThreads;
  }
  // Passes over a table of so many rows: digits of the largest key, of rows that are of no sequence.
  static __device__ __forceinline__ int passes(i64 rows) { return rows + 1 < kDigits ? 1 : 2; }
  static __device__ __forceinline__ int digit(u32 key, int pass) { return key >> (pass * kBits) & (kDigits - 1); }
};

// A table's share of the workspace. Where rows come in the order of keys, there are only the keys.
struct KeyRegions {
  u32* keys;        // of each row: the row of the table, their number where it finds none, one more where it is no row
  u32* order[2];    // rows by key; passes write to them in turn
  u32* histograms;  // (chunks, digits): rows of a digit, then such rows of earlier chunks
  u32* totals;      // (digits): rows of all chunks

  template <class Params>
  __device__ __forceinline__ KeyRegions(const Params& params, int table) : keys(params.keys + table * params.rows) {
    if constexpr (!Operands::TableSums::kSorted) {
      order[0] = params.order_a + table * params.rows;
      order[1] = params.order_b + table * params.rows;
      histograms = params.histograms + table * (KeySort::kMaxChunks + 1) * KeySort::kDigits;
      totals = histograms + KeySort::kMaxChunks * KeySort::kDigits;
    }
  }

  // Number of the i-th row in the order that a pass finds.
  __device__ __forceinline__ u32 row(int pass, i64 i) const {
    return pass == 0 ? static_cast<u32>(i) : order[(pass - 1) % 2][i];
  }
};

// A thread for each row, and neighbouring rows for the lanes of a warp.
struct OneThread {
  static constexpr bool kTogether = true;
};

// The keys of a chunk's rows, of all tables, and how many there are of each lowest digit. All threads of the CTA call,
// as of what follows.
template <class Operands, class Params>
__device__ __forceinline__ void write_keys(const Params& params, int chunk) {
  using Sums = typename Operands::TableSums;
  constexpr int kCounts = Sums::kSorted ? 1 : Sums::kCount * KeySort::kDigits;
  __shared__ __align__(16) unsigned char static_bytes[kCounts * sizeof(u32)];
  u32* const counts = reinterpret_cast<u32*>(static_bytes);
  const i64 chunk_rows = KeySort::chunk_rows(params.rows), begin = chunk * chunk_rows;
  const i64 end = min(begin + chunk_rows, params.rows);
  i64 rows[Sums::kCount];
  Sums::counts(params, rows);
  if constexpr (!Sums::kSorted) {
    for (int digit = threadIdx.x; digit < kCounts; digit += blockDim.x) counts[digit] = 0;
    __syncthreads();
  }
  for (i64 first = begin; first < end; first += blockDim.x) {
    const i64 row = first + threadIdx.x;
    const Places<OneThread, Operands> place(params, row < end ? row : params.rows);
    if (row >= end) continue;
#pragma unroll
    for (int table = 0; table < Sums::kCount; ++table) {
      const i64 none = rows[table] + (place.exists() ? 0 : 1), found = place.sum(table);
      const u32 key = static_cast<u32>(found < 0 ? none : found);
      KeyRegions(params, table).keys[row] = key;
      if constexpr (!Sums::kSorted) atomicAdd(counts + table * KeySort::kDigits + KeySort::digit(key, 0), 1u);
    }
  }
  if constexpr (!Sums::kSorted) {
    __syncthreads();
    for (int digit = threadIdx.x; digit < kCounts; digit += blockDim.x)
      KeyRegions(params, digit / KeySort::kDigits).histograms[chunk * KeySort::kDigits + digit % KeySort::kDigits] =
          counts[digit];
    __syncthreads();
  }
}

// Counts the higher digits of a chunk, in the order of the lower ones.
__device__ __forceinline__ void count_digits(const KeyRegions& regions, int chunk, i64 rows) {
  constexpr int pass = 1;
  __shared__ __align__(16) unsigned char static_bytes[KeySort::kDigits * sizeof(u32)];
  u32* const counts = reinterpret_cast<u32*>(static_bytes);
  const i64 chunk_rows = KeySort::chunk_rows(rows), begin = chunk * chunk_rows;
  for (int digit = threadIdx.x; digit < KeySort::kDigits; digit += KeySort::kThreads) counts[digit] = 0;
  __syncthreads();
  for (i64 i = begin + threadIdx.x; i < min(begin + chunk_rows, rows); i += KeySort::kThreads)
    atomicAdd(counts + KeySort::digit(regions.keys[regions.row(pass, i)], pass), 1u);
  __syncthreads();
  for (int digit = threadIdx.x; digit < KeySort::kDigits; digit += KeySort::kThreads)
    regions.histograms[chunk * KeySort::kDigits + digit] = counts[digit];
  __syncthreads();
}

// A group of 32 digits: rows of them in all chunks before each. Lanes are digits, then chunks.
__device__ __forceinline__ void sum_histograms(const KeyRegions& regions, int group, i64 rows) {
  constexpr int kPitch = 33;
  __shared__ __align__(16) unsigned char static_bytes[KeySort::kMaxChunks * kPitch * sizeof(u32)];
  u32* const counts = reinterpret_cast<u32*>(static_bytes);
  const int chunks = KeySort::chunks(rows), lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  u32* const first = regions.histograms + group * 32;
  for (int chunk = warp; chunk < chunks; chunk += warps)
    counts[chunk * kPitch + lane] = first[chunk * KeySort::kDigits + lane];
  __syncthreads();
  for (int digit = warp; digit < 32; digit += warps) {
    u32 before = 0;
    for (int begin = 0; begin < chunks; begin += 32) {
      const int chunk = begin + lane;
      const u32 own = chunk < chunks ? counts[chunk * kPitch + digit] : 0;
      u32 sum = own;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
      }
      if (chunk < chunks) counts[chunk * kPitch + digit] = before + sum - own;
      before += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) regions.totals[group * 32 + digit] = before;
  }
  __syncthreads();
  for (int chunk = warp; chunk < chunks; chunk += warps)
    first[chunk * KeySort::kDigits + lane] = counts[chunk * kPitch + lane];
}

// Puts the rows of a chunk in order, each warp its share of them.
__device__ __forceinline__ void put_in_order(const KeyRegions& regions, int pass, int chunk, i64 rows) {
  constexpr int kWarps = KeySort::kWarps, kDigits = KeySort::kDigits, kThreads = KeySort::kThreads;
  constexpr int kEach = kDigits / kThreads;
  __shared__ __align__(16) unsigned char static_bytes[((kWarps + 1) * kDigits + kWarps) * sizeof(u32)];
  u32* const places = reinterpret_cast<u32*>(static_bytes);  // (warps, digits)
  u32* const begins = places + kWarps * kDigits;             // (digits): rows of all chunks before the digit's
  u32* const of_warps = begins + kDigits;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 chunk_rows = KeySort::chunk_rows(rows), share = chunk_rows / kWarps;
  const i64 begin = chunk * chunk_rows + warp * share, end = min(begin + share, rows);
  u32* const own = places + warp * kDigits;
#pragma unroll
  for (int i = 0; i < kEach; ++i) begins[i * kThreads + threadIdx.x] = regions.totals[i * kThreads + threadIdx.x];
#pragma unroll 4
  for (int digit = lane; digit < kDigits; digit += 32) own[digit] = 0;
  __syncthreads();
  for (i64 i = begin + lane; i < end; i += 32)
    atomicAdd(own + KeySort::digit(regions.keys[regions.row(pass, i)], pass), 1u);

  // Each thread adds up neighbouring digits, then those of the threads before it.
  u32 sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) sum += begins[threadIdx.x * kEach + i];
  u32 before = sum;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const u32 other = __shfl_up_sync(~0u, before, step);
    if (lane >= step) before += other;
  }
  if (lane == 31) of_warps[warp] = before;
  __syncthreads();
  before -= sum;
  for (int other = 0; other < warp; ++other) before += of_warps[other];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const u32 count = begins[threadIdx.x * kEach + i];
    begins[threadIdx.x * kEach + i] = before;
    before += count;
  }
  __syncthreads();
  // Behind the rows of earlier chunks, warp by warp.
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int digit = i * kThreads + threadIdx.x;
    u32 place = begins[digit] + regions.histograms[chunk * kDigits + digit];
#pragma unroll
    for (int other = 0; other < kWarps; ++other) {
      const u32 count = places[other * kDigits + digit];
      places[other * kDigits + digit] = place;
      place += count;
    }
  }
  __syncthreads();

  u32* const to = regions.order[pass % 2];
  for (i64 i = begin; i < end; i += 32) {
    const bool mine = i + lane < end;
    const u32 row = mine ? regions.row(pass, i + lane) : 0;
    const int digit = mine ? KeySort::digit(regions.keys[row], pass) : kDigits;
    const u32 same = __match_any_sync(~0u, digit);
    const u32 earlier = __popc(same & ((1u << lane) - 1));
    u32 place = 0;
    if (mine && earlier == 0) {
      place = own[digit];
      own[digit] = place + __popc(same);
    }
    place = __shfl_sync(~0u, place, __ffs(same) - 1);
    if (mine) to[place + earlier] = row;
    __syncwarp();
  }
  __syncthreads();
}

// Each chunk is one CTA's, however many there are. `times`: as often as there are tables that CTAs take turns with.
template <class Step>
__device__ __forceinline__ void for_each_chunk(i64 rows, int times, const Step& step) {
  for (int i = blockIdx.x; i < KeySort::chunks(rows) * times; i += gridDim.x) step(i);
}
