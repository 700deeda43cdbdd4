// How the threads of a CTA share out its rows, and the threads of a row its elements.
//
// Threads take vectors of neighbouring elements, those of one row one after the other: in chunk c, thread t has vector
// c * kThreadsPerRow + t. Threads that share a row are in one warp, or are whole warps.
#pragma once
#include "common/pack.cuh"

template <class Spec, class Config>
struct RowLayout {
  static constexpr int kThreads = 32 * Config::kWarps;
  static constexpr int kThreadsPerRow = Config::kThreadsPerRow;
  static constexpr int kRows = kThreads / kThreadsPerRow;  // of the CTA at a time
  static constexpr int kLanesPerRow = kThreadsPerRow < 32 ? kThreadsPerRow : 32;
  static constexpr int kWarpsPerRow = kThreadsPerRow / kLanesPerRow;
  static constexpr bool kTogether = true;  // all lanes of a warp ask where rows are, for neighbouring ones
  static constexpr int kVector = Config::kVector;
  static constexpr int kVectors = Spec::kWidth / kVector;
  static constexpr int kChunks = ceil_div(kVectors, kThreadsPerRow);
  static_assert(Spec::kWidth % kVector == 0 && kThreads % kThreadsPerRow == 0, "rows are shared out evenly");

  static __device__ __forceinline__ int thread_of_row() { return threadIdx.x % kThreadsPerRow; }
  static __device__ __forceinline__ int row_of_cta() { return threadIdx.x / kThreadsPerRow; }

  // Whether the thread has a vector in the chunk: every thread has in all chunks but the last.
  static __device__ __forceinline__ bool has(int chunk) {
    if (kVectors % kThreadsPerRow == 0 || chunk + 1 < kChunks) return true;
    return chunk * kThreadsPerRow + thread_of_row() < kVectors;
  }
  static __device__ __forceinline__ int column(int chunk) { return thread_of_row() * kVector + columns_to(chunk); }
  // From the thread's first vector to that in a chunk: known to the compiler, so that an address is one for all chunks.
  static constexpr __device__ int columns_to(int chunk) { return chunk * kThreadsPerRow * kVector; }
};

// For what an operator may have and another not: a specialisation on Exists<typename Operands::Groups>::type is chosen
// where there is such a type.
template <class Type>
struct Exists {
  using type = void;
};

constexpr __host__ __device__ int at_least_one(int count) { return count < 1 ? 1 : count; }
