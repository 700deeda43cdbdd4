// hstu_attention on Ampere and Ada: the two matrix products of a chunk of columns, on tensor cores and in fp32.
//
// `S` says the shapes: Shape of a forward kernel, where q meets k and then P meets v, or Operand of a backward one,
// where the same matrix is met twice: read `q` as the tile that stays, `k` and `v` as the one that passes.
//
// Both classes have the same functions, multiply_scores() being add_scores() to zeroes, and the same fragments, those
// of mma.sync: element e of fragment j of S is at row g + 8 * (e / 2) and column 8 * j + score_column(e % 2) of the
// chunk, of O at column 8 * j + 2 * t + e % 2, with g = lane / 4 and t = lane % 4. `k`, `v` point at the chunk's first
// row.
#pragma once
#include "attention/sm80/shared.cuh"
#include "common/fragment_store.cuh"
#include "common/ptx/ldst_shared.cuh"
#include "common/ptx/mma.cuh"

namespace sm80 {

// Scores or sums.
template <class Fragments>
__device__ __forceinline__ void clear_fragments(Fragments& fragments) {
#pragma unroll
  for (auto& row : fragments) {
#pragma unroll
    for (auto& fragment : row) {
#pragma unroll
      for (float& element : fragment) element = 0.0f;
    }
  }
}

// Calls what(i, j, e) for every element of this thread: that of row 16 i + 8 (e / 2) of the warp's, counted from the
// thread's first, and of column 8 j + score_column(e % 2) of the chunk.
template <class S, class What>
__device__ __forceinline__ void for_each_score(const What& what) {
#pragma unroll
  for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
    for (int j = 0; j < S::kScoreTiles; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) what(i, j, e);
    }
  }
}

// bf16, fp16 and tf32. P stays in registers: the accumulator fragment of S is the A operand of the second product. For
// 16-bit data it is so by design. For tf32 the A operand wants columns t and t + 4 where the accumulator has 2t and 2t
// + 1; so the rows of k are presented to the first product in that order, which is free.
template <class S>
class TensorProducts {
 public:
  static constexpr bool kTf32 = S::kProduct == Product::kTf32;

  __device__ __forceinline__ TensorProducts() {
    const int lane = threadIdx.x % 32, r = lane % 8;
    const int key = kTf32 ? r / 2 + r % 2 * 4 : r;
    k_ = S::QkTile::lane(lane / 16 * 8 + key, lane / 8 % 2 * kPieceBytes);
    if constexpr (kTf32) {
      v_[0] = word_lane(lane % 4, lane / 4 * 4);
      if constexpr (kTwoLanes) v_[1] = word_lane(lane % 4 + 4, lane / 4 * 4);
    } else {
      v_[0] = S::VTile::lane(lane % 16, lane / 16 * kPieceBytes);
    }
  }

  // `q` is the first of the warp's rows.
  __device__ __forceinline__ void set_queries(u32 q) {
    const int lane = threadIdx.x % 32;
    q_tile_ = q;
    q_ = S::QkTile::lane(lane % 16, lane / 16 * kPieceBytes);
    if constexpr (S::kQueryInRegisters) {
#pragma unroll
      for (int step = 0; step < S::kQkSteps; ++step) {
#pragma unroll
        for (int i = 0; i < S::kRowTiles; ++i) load_query(queries_[step][i], i, step);
      }
    }
  }

  __device__ __forceinline__ void multiply_scores(u32 k, typename S::Scores& scores) const {
    clear_fragments(scores);
    add_scores(k, scores);
  }

  __device__ __forceinline__ void add_scores(u32 k, typename S::Scores& scores) const {
#pragma unroll
    for (int step = 0; step < S::kQkSteps; ++step) {
      u32 a[S::kRowTiles][4];
#pragma unroll
      for (int i = 0; i < S::kRowTiles; ++i) {
        if constexpr (S::kQueryInRegisters) {
#pragma unroll
          for (int w = 0; w < 4; ++w) a[i][w] = queries_[step][i][w];
        } else {
          load_query(a[i], i, step);
        }
      }
#pragma unroll
      for (int j = 0; j < S::kScoreTiles; j += 2) {
        u32 b[4];
        ldmatrix_x4(b, S::QkTile::at(k, k_, j * 8, step * kPieceStepBytes));
#pragma unroll
        for (int i = 0; i < S::kRowTiles; ++i) {
          multiply(scores[i][j], a[i], b[0], b[1]);
          multiply(scores[i][j + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  __device__ __forceinline__ void multiply_outputs(u32 v, const typename S::Scores& scores,
                                                   typename S::Outputs& outputs) const {
    if constexpr (kTf32) {
      multiply_outputs_tf32(v, scores, outputs);
    } else {
      multiply_outputs_16bit(v, scores, outputs);
    }
  }

  static __device__ __forceinline__ int score_column(int e) {
    const int t = threadIdx.x % 4;
    return kTf32 ? t + 4 * e : 2 * t + e;
  }

 private:
  static __device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    if constexpr (S::kProduct == Product::kBf16) {
      mma_m16n8k16_bf16(c, a, b0, b1);
    } else if constexpr (S::kProduct == Product::kFp16) {
      mma_m16n8k16_f16(c, a, b0, b1);
    } else {
      mma_m16n8k8_tf32(c, a, b0, b1);
    }
  }

  // Words of tf32 four rows apart lie in the same place of theirs, but where the swizzle goes by eight rows.
  static constexpr bool kTwoLanes = kTf32 && S::VTile::kRowBits == 3;

  // A word within the 32 bytes of a step: where those are the unit of the swizzle, it stays in its place there.
  static __device__ __forceinline__ typename S::VTile::Lane word_lane(int row, int byte) {
    constexpr int kUnit = S::VTile::kUnitBytes;
    typename S::VTile::Lane lane = S::VTile::lane(row, byte / kUnit * kUnit);
    lane.column += byte % kUnit;
    return lane;
  }

  __device__ __forceinline__ void load_query(u32 (&a)[4], int fragment, int step) const {
    ldmatrix_x4(a, S::QkTile::at(q_tile_, q_, fragment * 16, step * kPieceStepBytes));
  }

  __device__ __forceinline__ void multiply_outputs_16bit(u32 v, const typename S::Scores& p,
                                                         typename S::Outputs& outputs) const {
#pragma unroll
    for (int step = 0; step < S::kScoreTiles / 2; ++step) {
      u32 a[S::kRowTiles][4];
#pragma unroll
      for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const float* pair = &p[i][2 * step + w / 2][w % 2 * 2];
          a[i][w] = pack_pair < S::kProduct == Product::kBf16 > (pair[0], pair[1]);
        }
      }
#pragma unroll
      for (int j = 0; j + 2 <= S::kOutputTiles; j += 2) {
        u32 b[4];
        ldmatrix_x4_trans(b, S::VTile::at(v, v_[0], step * 16, j * kPieceBytes));
#pragma unroll
        for (int i = 0; i < S::kRowTiles; ++i) {
          multiply(outputs[i][j], a[i], b[0], b[1]);
          multiply(outputs[i][j + 1], a[i], b[2], b[3]);
        }
      }
      if constexpr (S::kOutputTiles % 2 == 1) {
        constexpr int kLast = S::kOutputTiles - 1;
        u32 b[2];
        ldmatrix_x2_trans(b, S::VTile::at(v, v_[0], step * 16, kLast * kPieceBytes));
#pragma unroll
        for (int i = 0; i < S::kRowTiles; ++i) multiply(outputs[i][kLast], a[i], b[0], b[1]);
      }
    }
  }

  // ldmatrix transposes 16-bit elements only, so v is read word by word: row t (and t + 4), column g of each fragment.
  __device__ __forceinline__ void multiply_outputs_tf32(u32 v, const typename S::Scores& p,
                                                        typename S::Outputs& outputs) const {
#pragma unroll
    for (int step = 0; step < S::kScoreTiles; ++step) {
      u32 a[S::kRowTiles][4];
#pragma unroll
      for (int i = 0; i < S::kRowTiles; ++i) {
        a[i][0] = cvt_rna_tf32(p[i][step][0]);
        a[i][1] = cvt_rna_tf32(p[i][step][2]);
        a[i][2] = cvt_rna_tf32(p[i][step][1]);
        a[i][3] = cvt_rna_tf32(p[i][step][3]);
      }
#pragma unroll
      for (int j = 0; j < S::kOutputTiles; ++j) {
        const u32 address = S::VTile::at(v, v_[0], step * 8, j * kPieceStepBytes);
        const u32 b0 = ld_shared_u32(address);
        const u32 b1 = ld_shared_u32(kTwoLanes ? S::VTile::at(v, v_[kTwoLanes], step * 8, j * kPieceStepBytes)
                                               : address + 4 * S::VTile::kRowBytes);
#pragma unroll
        for (int i = 0; i < S::kRowTiles; ++i) multiply(outputs[i][j], a[i], b0, b1);
      }
    }
  }

  u32 q_tile_ = 0;
  typename S::QkTile::Lane q_{}, k_{};
  typename S::VTile::Lane v_[kTwoLanes ? 2 : 1]{};
  u32 queries_[S::kQueryInRegisters ? S::kQkSteps : 1][S::kRowTiles][4];
};

// fp32 with every product and sum rounded to nearest: the same fragments, filled by fused multiply-adds.
template <class S>
class ScalarProducts {
 public:
  __device__ __forceinline__ ScalarProducts() {
    const int t = threadIdx.x % 4;
    keys_[0] = S::QkTile::lane(2 * t, 0);
    keys_[1] = S::QkTile::lane(2 * t + 1, 0);
  }

  __device__ __forceinline__ void set_queries(u32 q) {
    q_tile_ = q;
    q_ = S::QkTile::lane(threadIdx.x % 32 / 4, 0);
  }

  __device__ __forceinline__ void multiply_scores(u32 k, typename S::Scores& scores) const {
    clear_fragments(scores);
    add_scores(k, scores);
  }

  __device__ __forceinline__ void add_scores(u32 k, typename S::Scores& scores) const {
#pragma unroll 2
    for (int byte = 0; byte < S::kQkBytes; byte += kPieceBytes) {
      float4 q[S::kRowTiles][2];
#pragma unroll
      for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          q[i][half] = ld_shared_float4(S::QkTile::at(q_tile_, q_, i * 16 + half * 8, byte));
      }
#pragma unroll
      for (int j = 0; j < S::kScoreTiles; ++j) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const float4 key = ld_shared_float4(S::QkTile::at(k, keys_[odd], j * 8, byte));
#pragma unroll
          for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              float& sum = scores[i][j][2 * half + odd];
              sum = __fmaf_rn(q[i][half].x, key.x, sum);
              sum = __fmaf_rn(q[i][half].y, key.y, sum);
              sum = __fmaf_rn(q[i][half].z, key.z, sum);
              sum = __fmaf_rn(q[i][half].w, key.w, sum);
            }
          }
        }
      }
    }
  }

  // P of a row is spread over the four lanes of a quad; each column's value is handed round before it is used.
  __device__ __forceinline__ void multiply_outputs(u32 v, const typename S::Scores& p,
                                                   typename S::Outputs& outputs) const {
    const int lane = threadIdx.x % 32, t = lane % 4;
#pragma unroll
    for (int j = 0; j < S::kScoreTiles; ++j) {
      // Not unrolled: the accumulators leave few registers for values on their way.
#pragma unroll 1
      for (int source = 0; source < 4; ++source) {
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          float weight[S::kRowTiles][2];
#pragma unroll
          for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              weight[i][half] = __shfl_sync(~0u, p[i][j][2 * half + odd], lane - t + source);
            }
          }
          add_row(v, S::VTile::lane(8 * j + 2 * source + odd, 8 * t), weight, outputs);
        }
      }
    }
  }

  static __device__ __forceinline__ int score_column(int e) { return 2 * (threadIdx.x % 4) + e; }

 private:
  // O += weight * (one row of v)
  static __device__ __forceinline__ void add_row(u32 v, const typename S::VTile::Lane& row,
                                                 const float (&weight)[S::kRowTiles][2], typename S::Outputs& outputs) {
#pragma unroll
    for (int o = 0; o < S::kOutputTiles; ++o) {
      const float2 value = ld_shared_float2(S::VTile::at(v, row, 0, o * 32));
#pragma unroll
      for (int i = 0; i < S::kRowTiles; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float* sum = &outputs[i][o][2 * half];
          sum[0] = __fmaf_rn(weight[i][half], value.x, sum[0]);
          sum[1] = __fmaf_rn(weight[i][half], value.y, sum[1]);
        }
      }
    }
  }

  u32 q_tile_ = 0;
  typename S::QkTile::Lane q_{};
  typename S::QkTile::Lane keys_[2]{};
};

template <bool kScalar, class S>
struct ProductsOf {
  using Type = TensorProducts<S>;
};
template <class S>
struct ProductsOf<true, S> {
  using Type = ScalarProducts<S>;
};

template <class S>
using Products = typename ProductsOf<S::kProduct == Product::kIeee, S>::Type;

}  // namespace sm80
