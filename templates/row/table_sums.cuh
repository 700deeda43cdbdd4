// Sums over the rows that found a row of a table.
#pragma once
#include "row/layout.cuh"

constexpr u32 kNoKey = ~0u;  // of no row of a table

// The elements of a row of sums that a thread has.
template <class Layout>
struct TableRowSums {
  static constexpr int kPiece = Layout::kVector % 4 == 0 ? 4 : 1;  // elements of one access
  float elements[Layout::kChunks][Layout::kVector];

  // step(elements of a piece, its place in the row)
  template <class Number, class Step>
  __device__ __forceinline__ void for_each_piece(Number* row, const Step& step) {
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      if (!Layout::has(chunk)) continue;
      Number* const column = row + Layout::column(chunk);
#pragma unroll
      for (int i = 0; i < Layout::kVector; i += kPiece) step(elements[chunk] + i, column + i);
    }
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
#pragma unroll
      for (int i = 0; i < Layout::kVector; ++i) elements[chunk][i] = 0;
    }
  }
  __device__ __forceinline__ void add(const TableRowSums& other) {
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
#pragma unroll
      for (int i = 0; i < Layout::kVector; ++i) elements[chunk][i] += other.elements[chunk][i];
    }
  }
  // Past L1: other threads wrote them.
  __device__ __forceinline__ void add(const float* from) {
    for_each_piece(from, [](float* piece, const float* place) {
      if constexpr (kPiece == 4) {
        const float4 four = __ldcg(reinterpret_cast<const float4*>(place));
        piece[0] += four.x;
        piece[1] += four.y;
        piece[2] += four.z;
        piece[3] += four.w;
      } else {
        piece[0] += __ldcg(place);
      }
    });
  }
  // Loads from shared memory.
  __device__ __forceinline__ void load_shared(const float* from) {
    for_each_piece(from, [](float* piece, const float* place) {
      static_assert(kPiece == 4, "one access");
      const float4 four = *reinterpret_cast<const float4*>(place);
      piece[0] = four.x;
      piece[1] = four.y;
      piece[2] = four.z;
      piece[3] = four.w;
    });
  }
  __device__ __forceinline__ void store_shared(float* to) {
    for_each_piece(to, [](const float* piece, float* place) {
      static_assert(kPiece == 4, "one access");
      *reinterpret_cast<float4*>(place) = make_float4(piece[0], piece[1], piece[2], piece[3]);
    });
  }
  // Takes the sums of `other`, or zeros, where `others` says so.
  __device__ __forceinline__ void choose(bool others, const TableRowSums& other) {
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
#pragma unroll
      for (int i = 0; i < Layout::kVector; ++i) elements[chunk][i] = others ? other.elements[chunk][i] : 0.0f;
    }
  }
  __device__ __forceinline__ void leave(float* to) const { round_to<Fp32>(to); }
  template <class Type>
  __device__ __forceinline__ void round_to(void* row) const {
#pragma unroll
    for (int chunk = 0; chunk < Layout::kChunks; ++chunk) {
      if (!Layout::has(chunk)) continue;
      Pack<Type, Layout::kVector> rounded;
      rounded.set(elements[chunk]);
      rounded.store(static_cast<unsigned char*>(row) + Layout::column(chunk) * Type::kBytes);
    }
  }
};

// Rows of all tables in turns of the grid's groups.
template <class Layout, int kTables, class Step>
__device__ __forceinline__ void for_each_table_row(const i64 (&counts)[kTables], const Step& step) {
  const i64 groups = static_cast<i64>(gridDim.x) * Layout::kRows;
  const i64 first = static_cast<i64>(blockIdx.x) * Layout::kRows + Layout::row_of_cta();
  for (int table = 0; table < kTables; ++table) {
    for (i64 row = first; row < counts[table]; row += groups) step(table, row);
  }
}
