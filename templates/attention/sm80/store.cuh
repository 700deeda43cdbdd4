// hstu_attention on Ampere and Ada: scaled, rounded once and stored, rows below n only.
#pragma once
#include "attention/operands/factors.cuh"
#include "attention/sm80/shared.cuh"
#include "common/fragment_store.cuh"

namespace sm80 {

// Stores of fp32 and of 16-bit data whose rows are not aligned to 16 bytes go straight from the fragments, as wide as
// allowed.
template <class Spec, class Config>
__device__ __forceinline__ void store_pair(char* address, float low, float high) {
  if constexpr (Spec::kDtypeFp32) {
    float* out = reinterpret_cast<float*>(address);
    if constexpr (Spec::kAlignment >= 8) {
      *reinterpret_cast<float2*>(out) = make_float2(low, high);
    } else {
      out[0] = low;
      out[1] = high;
    }
  } else {
    const u32 word = pack_pair<Spec::kDtypeBf16>(low, high);
    if constexpr (Spec::kAlignment >= 4) {
      *reinterpret_cast<u32*>(address) = word;
    } else {
      u16* out = reinterpret_cast<u16*>(address);
      out[0] = static_cast<u16>(word);
      out[1] = static_cast<u16>(word >> 16);
    }
  }
}

template <class Spec>
__device__ __forceinline__ void store_one(char* address, float value) {
  if constexpr (Spec::kDtypeFp32) {
    *reinterpret_cast<float*>(address) = value;
  } else {
    *reinterpret_cast<u16*>(address) = static_cast<u16>(pack_pair<Spec::kDtypeBf16>(value, 0.0f));
  }
}

// `out`: the head's columns of the row that holds the sequence's first one; `row`: the warp's first row within the
// sequence, which has `rows`. Rows below 0 lie before it and become zero. `S`: the shape of the products;
// `factors`: see row_factors.
template <class Spec, class Config, class S, class Factors>
__device__ __forceinline__ void store_outputs(char* out, i64 row_bytes, int row, int rows,
                                              const typename S::Outputs& outputs, const Factors& factors) {
  constexpr int kElementBytes = Spec::kDtypeFp32 ? 4 : 2;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const auto sees = [&](int i, int half) { return !Config::kDelta || row + i * 16 + half * 8 + g >= 0; };
#pragma unroll
  for (int i = 0; i < S::kRowTiles; ++i) {
    if constexpr (!Spec::kDtypeFp32 && Spec::kAlignment >= 16) {
      u32 words[2 * S::kOutputTiles];
#pragma unroll
      for (int j = 0; j < S::kOutputTiles; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float* pair = &outputs[i][j][2 * half];
          const float scale = factor_of(factors, row + i * 16 + half * 8 + g);
          const u32 word = pack_pair<Spec::kDtypeBf16>(pair[0] * scale, pair[1] * scale);
          words[2 * j + half] = sees(i, half) ? word : 0;
        }
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = row + i * 16 + half * 8 + g;
        store_fragment_row<8 * S::kOutputTiles>(reinterpret_cast<u16*>(out + r * row_bytes), words, half, r < rows);
      }
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int r = row + i * 16 + half * 8 + g;
        if (r >= rows) continue;
        const float scale = factor_of(factors, r);
        char* row_address = out + r * row_bytes + 2 * t * kElementBytes;
#pragma unroll
        for (int j = 0; j < S::kOutputTiles; ++j) {
          const float* pair = &outputs[i][j][2 * half];
          const float low = sees(i, half) ? pair[0] * scale : 0.0f, high = sees(i, half) ? pair[1] * scale : 0.0f;
          const int left = S::kOutputColumns - 8 * j - 2 * t;  // columns of the head from `low` on
          if (8 * j + 8 <= S::kOutputColumns || left >= 2) {
            store_pair<Spec, Config>(row_address + j * 8 * kElementBytes, low, high);
          } else if (left == 1) {
            store_one<Spec>(row_address + j * 8 * kElementBytes, low);
          }
        }
      }
    }
  }
}

}  // namespace sm80
