// Sums of the columns of a factor, stage by stage, by all threads of the CTA: each has one piece of every few lines. Of
// the tiles that have the same columns, the first one adds up all of them.
#pragma once
#include "common/ptx/ldst_shared.cuh"
#include "gemm/column_sums.cuh"
#include "gemm/sm80/shared.cuh"

namespace gemm {

template <class Config, bool = Config::kColumnSums != 0>
class ColumnSums {
  static constexpr int kColumns = kSumsOfA<Config> ? Config::kBlockM : Config::kBlockN;
  static constexpr int kElements = kPieceElements<Config>, kPieces = kColumns / kElements;
  static constexpr int kGroups = WarpTile<Config>::kThreads / kPieces;  // of threads, with lines of their own
  static_assert(kGroups * kColumns * 4 <= Config::kBlockM * kLineBytes, "sums of all groups fit into a stage");

 public:
  // The lines of a stage lie along the columns; those that the tile does not have are 0.
  __device__ __forceinline__ void add(const Shared<Config>& shared, int stage) {
    if (group() >= kGroups) return;
    const u32 factor = shared_address(kSumsOfA<Config> ? shared.a[stage] : shared.b[stage]);
    const u32 box = box_of<Config>(factor, piece() * kElements);
#pragma unroll 4
    for (int line = group(); line < Config::kDepth; line += kGroups) {
      const float4 four =
          ld_shared_float4(piece_address<Config, Major::kResult>(box, line, piece() % kLinePieces));
      const u32 words[4] = {__float_as_uint(four.x), __float_as_uint(four.y), __float_as_uint(four.z),
                            __float_as_uint(four.w)};
#pragma unroll
      for (int i = 0; i < kElements; ++i) sums_[i] += Epilogue::Data::get(words, i);
    }
  }

  // Behind the tile's last stage: groups are added up in the memory of the first one. All threads of the CTA call.
  template <class Params>
  __device__ __forceinline__ void store(Shared<Config>& shared, const Params& params, const WorkTile& tile) {
    float* const groups = reinterpret_cast<float*>(shared.a[0]);
    __syncthreads();
    if (group() < kGroups) {
#pragma unroll
      for (int i = 0; i < kElements; ++i) groups[group() * kColumns + piece() * kElements + i] = sums_[i];
    }
    __syncthreads();
    for (int column = threadIdx.x * 2; column < kColumns; column += WarpTile<Config>::kThreads * 2) {
      float x = 0, y = 0;
#pragma unroll 4
      for (int i = 0; i < kGroups; ++i) {
        x += groups[i * kColumns + column];
        y += groups[i * kColumns + column + 1];
      }
      store_column_sums<Config>(params, tile, first_summed_column<Config>(tile) + column, x, y);
    }
  }

 private:
  static __device__ __forceinline__ int piece() { return threadIdx.x % kPieces; }
  static __device__ __forceinline__ int group() { return threadIdx.x / kPieces; }

  float sums_[kElements] = {};
};

template <class Config>
class ColumnSums<Config, false> {};

}  // namespace gemm
