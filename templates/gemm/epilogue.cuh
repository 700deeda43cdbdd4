// Results of sums: the epilogue's element, rounded and stored, or a part of a sum that CTAs share.
#pragma once
#include "common/fragment_store.cuh"
#include "common/pack.cuh"
#include "common/ptx/prefetch.cuh"

namespace gemm {

// Whether two neighbours of the result are read, and stored, one by one: rows begin anywhere, and the last column may
// have no neighbour.
template <class Config>
constexpr bool kOneByOne = Config::kOutAlignment < 2 * Epilogue::Data::kBytes;

// The column itself, or that of the last pair, if the column is behind it.
template <class Config>
__device__ __forceinline__ int column_inside(int column) {
  return min(column, Config::kColumns - (kOneByOne<Config> ? 1 : 2));
}

// Elements between one row of a part of the sums and the next: threads that add up parts have eight of one row.
template <class Config>
constexpr int kPartialPitch = (Config::kColumns + 7) / 8 * 8;

// Elements that the epilogue reads of some tensors for two neighbouring elements of the result: in registers, as it is
// in memory, so that it may be loaded long before.
template <class Config, class Tensors>
struct EpiloguePair {
  using Pair = Pack<typename Tensors::Type, 2>;
  static constexpr int kCount = Tensors::kCount, kLeast = kCount > 0 ? kCount : 1;
  struct Elements {
    float of[kLeast];
  };

  // A plain load, which stays between the stores around it: the compiler would bring others forward until it has no
  // registers left. `column`: of the first one.
  __device__ __forceinline__ void load(int tensor, const void* data, i64 element, int column) {
    const auto* const from = static_cast<const unsigned char*>(data) + element * Tensors::Type::kBytes;
    if constexpr (kOneByOne<Config>) {
      const bool has_second = column + 1 < Config::kColumns;
      if constexpr (Pair::kBytes == 8) {
        const u32* const two = reinterpret_cast<const u32*>(from);
        pairs[tensor].words[0] = two[0];
        pairs[tensor].words[1] = has_second ? two[1] : 0;
      } else {
        const u16* const two = reinterpret_cast<const u16*>(from);
        pairs[tensor].words[0] = two[0] | (has_second ? static_cast<u32>(two[1]) << 16 : 0);
      }
    } else if constexpr (Pair::kBytes == 8) {
      const uint2 two = *reinterpret_cast<const uint2*>(from);
      pairs[tensor].words[0] = two.x;
      pairs[tensor].words[1] = two.y;
    } else {
      pairs[tensor].words[0] = *reinterpret_cast<const u32*>(from);
    }
  }
  // Elements for one of the two.
  __device__ __forceinline__ Elements operator[](int i) const {
    Elements elements = {};
#pragma unroll
    for (int tensor = 0; tensor < kCount; ++tensor) elements.of[tensor] = pairs[tensor][i];
    return elements;
  }

  Pair pairs[kLeast];
};

// Vectors of columns, of which each sequence may have its own.
template <class Config, class Epilogue>
struct EpilogueVectors : EpiloguePair<Config, typename Epilogue::Vectors> {
  template <class Params>
  __device__ __forceinline__ void load(const Params& params, int column, i64 sequence = 0) {
    if constexpr (Epilogue::Vectors::kCount > 0) {
      const void* data[Epilogue::Vectors::kCount];
      i64 strides[Epilogue::Vectors::kCount];
      Epilogue::Vectors::find(params, data, strides);
#pragma unroll
      for (int i = 0; i < Epilogue::Vectors::kCount; ++i)
        EpiloguePair<Config, typename Epilogue::Vectors>::load(i, data[i], sequence * strides[i] + column, column);
    }
  }
};

// Matrices, which are as large as the result.
template <class Config, class Epilogue>
struct EpilogueMatrices : EpiloguePair<Config, typename Epilogue::Matrices> {
  static constexpr int kLine = 128 / Epilogue::Matrices::Type::kBytes;  // elements of a line of the cache

  template <class Params>
  static __device__ __forceinline__ void prefetch(const Params& params, i64 row, int column) {
    const void* data[Epilogue::Matrices::kCount];
    i64 strides[Epilogue::Matrices::kCount];
    Epilogue::Matrices::find(params, data, strides);
#pragma unroll
    for (int i = 0; i < Epilogue::Matrices::kCount; ++i) {
      const i64 element = row * strides[i] + column;
      prefetch_l2(static_cast<const unsigned char*>(data[i]) + element * Epilogue::Matrices::Type::kBytes);
    }
  }

  template <class Params>
  __device__ __forceinline__ void load(const Params& params, i64 row, int column) {
    if constexpr (Epilogue::Matrices::kCount > 0) {
      const void* data[Epilogue::Matrices::kCount];
      i64 strides[Epilogue::Matrices::kCount];
      Epilogue::Matrices::find(params, data, strides);
#pragma unroll
      for (int i = 0; i < Epilogue::Matrices::kCount; ++i)
        EpiloguePair<Config, typename Epilogue::Matrices>::load(i, data[i], row * strides[i] + column, column);
    }
  }
};

// Stores neighbours of a row of the result from `column` on, those that it has: words of the row, which begins at
// `row`, as long as its alignment allows.
template <class Config, int kWords, class Element>
__device__ __forceinline__ void store_neighbours(Element* row, int column, const u32 (&words)[kWords]) {
  constexpr int kBytes = Epilogue::Data::kBytes, kAll = kWords * 4;
  constexpr int kStored = Config::kOutAlignment < kAll ? Config::kOutAlignment : kAll;  // at a time
#pragma unroll
  for (int byte = 0; byte < kAll; byte += kStored) {
    u32 stored[(kStored + 3) / 4];
#pragma unroll
    for (int i = 0; i < (kStored + 3) / 4; ++i) stored[i] = words[byte / 4 + i] >> byte % 4 * 8;
    const int first = column + byte / kBytes;
    if (first < Config::kColumns) st_stream<kStored>(row + first, stored);
  }
}

// Some neighbours of a row, whose sums are complete: what the epilogue reads for them, and what becomes of them.
template <class Config, class Epilogue, int kElements>
struct EpilogueRun {
  // The row may end within the run.
  static constexpr bool kCut = Config::kColumns % kElements != 0;

  template <class Params>
  __device__ __forceinline__ void load(const Params& params, i64 row, int column) {
#pragma unroll
    for (int pair = 0; pair < kElements / 2; ++pair) {
      const int first = kCut ? column_inside<Config>(column + pair * 2) : column + pair * 2;
      vectors[pair].load(params, first);
      matrices[pair].load(params, row, first);
    }
  }

  template <class Params>
  __device__ __forceinline__ void store(const Params& params, i64 row, int column,
                                        const float (&sums)[kElements]) const {
    constexpr int kWords = kElements * Epilogue::Data::kBytes / 4;
    u32 words[kWords];
#pragma unroll
    for (int i = 0; i < kElements; i += 2) {
      const auto& vector = vectors[i / 2];
      const auto& matrix = matrices[i / 2];
      Epilogue::Data::put(words, i, Epilogue::apply(params, sums[i], column + i, vector[0].of, matrix[0].of),
                          Epilogue::apply(params, sums[i + 1], column + i + 1, vector[1].of, matrix[1].of));
    }
    constexpr int kStored = kWords < 4 ? kWords : 4;  // at a time
#pragma unroll
    for (int word = 0; word < kWords; word += kStored) {
      u32 stored[kStored];
#pragma unroll
      for (int i = 0; i < kStored; ++i) stored[i] = words[word + i];
      constexpr int kElement = Epilogue::Data::kBytes;
      if constexpr (kCut || Config::kOutAlignment < kStored * 4) {
        store_neighbours<Config>(params.out + row * params.out_stride, column + word * 4 / kElement, stored);
      } else {
        st_stream<kStored * 4>(params.out + row * params.out_stride + column + word * 4 / kElement, stored);
      }
    }
  }

  EpilogueVectors<Config, Epilogue> vectors[kElements / 2];
  EpilogueMatrices<Config, Epilogue> matrices[kElements / 2];
};

}  // namespace gemm
