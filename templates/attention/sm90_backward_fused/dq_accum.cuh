// Attention backward on Hopper, dS computed once: dq_accum, where the partials of dq are added up, in fp32 in global
// memory, and how dq comes of them.
#pragma once
#include "attention/operands/factors.cuh"
#include "attention/sequence.cuh"
#include "attention/sm90_backward/epilogue.cuh"
#include "attention/sm90_backward/products.cuh"
#include "attention/softmax.cuh"  // where kNumSoftmaxHeads
#include "common/fragment_store.cuh"
#include "common/ptx/red.cuh"

namespace sm90::backward {

constexpr int kDqAccumGroup = 16;  // columns of a group, see dq_accum_offset
constexpr int kDqAccumRows = 8;    // rows of a group

// Offset of 16 columns of a row, in the order in which threads of a quad hold them (0 1 8 9, 2 3 10 11, 4 5 12 13 and
// 6 7 14 15). The same columns of the next of 8 rows follow, so that what a warp adds at a time is 512 bytes in a row,
// or two pieces of them.
template <class Spec>
__device__ __forceinline__ i64 dq_accum_offset(i64 row, int head, int column) {
  constexpr int kGroups = Spec::kAttnDim / kDqAccumGroup;
  // Tensor maps have fewer than 2^32 rows, and no memory as many groups.
  const u32 index = static_cast<u32>(row);
  const u32 group = (index / kDqAccumRows * Spec::kHeads + head) * kGroups + column / kDqAccumGroup;
  return static_cast<i64>(group) * (kDqAccumRows * kDqAccumGroup) + index % kDqAccumRows * kDqAccumGroup;
}

// A consumer warpgroup's columns of the partial that 64 rows of dq get of a KV tile.
template <class Spec, class Config>
struct DqPartial {
  static_assert(Config::kDqAccumGroup == kDqAccumGroup && Config::kDqAccumRows == kDqAccumRows,
                "the workspace is made of these");
  static constexpr int kColumns = Spec::kAttnDim / Config::kConsumers;
  static constexpr int kSums = kColumns / 2;

  // `row0`: the first of the rows. Those past the end of the sequence are left out.
  static __device__ __forceinline__ void add(float* dq_accum, const TileInfo& tile, int row0,
                                             const float (&partial)[kSums]) {
    for_each_four(dq_accum, tile, row0, [&](float* to, int first) {
      add_global(to, partial[first], partial[first + 1], partial[first + 4], partial[first + 5]);
    });
  }

  static __device__ __forceinline__ void store(float* dq_accum, const TileInfo& tile, int row0,
                                               const float (&partial)[kSums]) {
    for_each_four(dq_accum, tile, row0, [&](float* to, int first) {
      *reinterpret_cast<float4*>(to) =
          make_float4(partial[first], partial[first + 1], partial[first + 4], partial[first + 5]);
    });
  }

  // Loads what was added up so far; 0 for rows past the end of the sequence.
  static __device__ __forceinline__ void load(float* dq_accum, const TileInfo& tile, int row0,
                                              float (&partial)[kSums]) {
    clear_sums(partial);
    for_each_four(dq_accum, tile, row0, [&](float* from, int first) {
      load_sum(from, partial[first], partial[first + 1], partial[first + 4], partial[first + 5]);
    });
  }

  // The whole sum, over scale, to dq.
  template <class Params>
  static __device__ __forceinline__ void round(const Params& params, const TileInfo& tile, int row0,
                                               const float (&partial)[kSums]) {
#ifdef kSiteWarps
    const float factor = common_factor<Spec>(params) * params.alpha;
#elifdef kDropoutSoftmax
    const float factor =
        unless_softmax(is_softmax_head<Spec>(tile.head), common_factor<Spec>(params), kept_factor(params));
#elifdef kNumSoftmaxHeads
    const float factor = unless_softmax(is_softmax_head<Spec>(tile.head), common_factor<Spec>(params));
#else
    const float factor = common_factor<Spec>(params);
#endif
    const int row = row0 + thread_row(), column = static_cast<int>(threadIdx.x) / kWarpgroup * kColumns;
    u16* to = params.dq + (tile.start + row) * params.dq_row_stride + tile.head * params.dq_head_stride + column +
              threadIdx.x % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + half * 8 >= tile.rows) return;
#pragma unroll
      for (int fragment = 0; fragment < kColumns / 8; ++fragment) {
        const float* own = partial + fragment * 4 + half * 2;
        *reinterpret_cast<u32*>(to + half * 8 * params.dq_row_stride + fragment * 8) =
            pack_pair<Spec::kDtypeBf16>(own[0] * factor, own[1] * factor);
      }
    }
  }

 private:
  // Calls `what` for each address that this thread has four values at, with the number of the first one in its partial:
  // the others are the next, and those 4 and 5 further on.
  template <class What>
  static __device__ __forceinline__ void for_each_four(float* dq_accum, const TileInfo& tile, int row0,
                                                       const What& what) {
    constexpr int kNextRows = Spec::kHeads * Spec::kAttnDim * kDqAccumRows;
    const int row = row0 + thread_row(), column = static_cast<int>(threadIdx.x) / kWarpgroup * kColumns;
    float* to = dq_accum + dq_accum_offset<Spec>(tile.start + row, tile.head, column) + threadIdx.x % 4 * 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row + half * 8 >= tile.rows) return;
#pragma unroll
      for (int group = 0; group < kColumns / kDqAccumGroup; ++group) {
        what(to + half * kNextRows + group * kDqAccumRows * kDqAccumGroup, group * 8 + half * 2);
      }
    }
  }
};

// dq of rows [8 i, 8 i + 8) of Q tile i of threads: what was added up, over scale, in the output's type and layout.
// Rows of no sequence are left as they are.
template <class Spec, class Params>
__device__ __forceinline__ void convert_dq_rows(const Params& params) {
  constexpr int kGroups = Spec::kAttnDim / kDqAccumGroup;
  const i64 begin = max(static_cast<i64>(params.seq_offsets[0]), 0ll);
  const i64 end = min(static_cast<i64>(params.seq_offsets[params.batch]), params.total_rows);
  for (int index = threadIdx.x; index < Spec::kHeads * kGroups * kDqAccumRows; index += blockDim.x) {
    const i64 row = static_cast<i64>(blockIdx.x) * kDqAccumRows + index % kDqAccumRows;
    const int head = index / kDqAccumRows / kGroups, column = index / kDqAccumRows % kGroups * kDqAccumGroup;
    if (row < begin || row >= end) continue;
    const float4* from = reinterpret_cast<const float4*>(params.dq_accum + dq_accum_offset<Spec>(row, head, column));
    u32 words[kDqAccumGroup / 2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 four = from[i];
#ifdef kSiteWarps
      const float factor = common_factor<Spec>(params) * params.alpha;
#elifdef kDropoutSoftmax
      const float factor =
          unless_softmax(is_softmax_head<Spec>(head), common_factor<Spec>(params), kept_factor(params));
#elifdef kNumSoftmaxHeads
      const float factor = unless_softmax(is_softmax_head<Spec>(head), common_factor<Spec>(params));
#else
      const float factor = common_factor<Spec>(params);
#endif
      words[i] = pack_pair<Spec::kDtypeBf16>(four.x * factor, four.y * factor);
      words[4 + i] = pack_pair<Spec::kDtypeBf16>(four.z * factor, four.w * factor);
    }
    uint4* to =
        reinterpret_cast<uint4*>(params.dq + row * params.dq_row_stride + head * params.dq_head_stride + column);
    to[0] = make_uint4(words[0], words[1], words[2], words[3]);
    to[1] = make_uint4(words[4], words[5], words[6], words[7]);
  }
}

}  // namespace sm90::backward
