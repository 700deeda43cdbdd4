// Neighbouring elements of global memory in registers.
#pragma once
#include "common/ptx/stream.cuh"

// Element types: `get` is element i of words in memory, `put` sets elements i and i + 1.
struct Bf16 {
  static constexpr int kBytes = 2;
  static __device__ __forceinline__ float get(const u32* words, int i) {
    return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000);
  }
  static __device__ __forceinline__ void put(u32* words, int i, float x, float y) {
    words[i / 2] = round_to_bf16x2(x, y);
  }
};

struct Fp16 {
  static constexpr int kBytes = 2;
  static __device__ __forceinline__ float get(const u32* words, int i) {
    return half_to_float(i % 2 == 0 ? words[i / 2] & 0xffff : words[i / 2] >> 16);
  }
  static __device__ __forceinline__ void put(u32* words, int i, float x, float y) {
    words[i / 2] = round_to_f16x2(x, y);
  }
};

struct Fp32 {
  static constexpr int kBytes = 4;
  static __device__ __forceinline__ float get(const u32* words, int i) { return __uint_as_float(words[i]); }
  static __device__ __forceinline__ void put(u32* words, int i, float x, float y) {
    words[i] = __float_as_uint(x);
    words[i + 1] = __float_as_uint(y);
  }
};

// kCount neighbouring elements in registers, as they are in memory.
template <class Type, int kCount>
struct Pack {
  static constexpr int kBytes = kCount * Type::kBytes;
  static constexpr int kPiece = kBytes < 16 ? kBytes : 16;  // of one access
  static constexpr int kPieceWords = (kPiece + 3) / 4;
  u32 words[(kBytes + 3) / 4];

  __device__ __forceinline__ float operator[](int i) const { return Type::get(words, i); }

  __device__ __forceinline__ void clear() {
    for (u32& word : words) word = 0;
  }

  __device__ __forceinline__ void fill(float value) {
    float values[kCount];
#pragma unroll
    for (float& element : values) element = value;
    set(values);
  }

  template <bool kOnce>
  __device__ __forceinline__ void load(const void* address) {
#pragma unroll
    for (int piece = 0; piece < kBytes / kPiece; ++piece) {
      u32 piece_words[kPieceWords];
      ld_stream<kPiece, kOnce>(piece_words, static_cast<const unsigned char*>(address) + piece * kPiece);
#pragma unroll
      for (int i = 0; i < kPieceWords; ++i) words[piece * kPieceWords + i] = piece_words[i];
    }
  }

  // Loads from shared memory, at a multiple of the bytes.
  __device__ __forceinline__ void load_shared(const unsigned char* address) {
    static_assert(kBytes == 8 || kBytes == 16, "one access");
    if constexpr (kBytes == 8) {
      const uint2 two = *reinterpret_cast<const uint2*>(address);
      words[0] = two.x;
      words[1] = two.y;
    } else {
      const uint4 four = *reinterpret_cast<const uint4*>(address);
      words[0] = four.x;
      words[1] = four.y;
      words[2] = four.z;
      words[3] = four.w;
    }
  }

  __device__ __forceinline__ void set(const float (&values)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      u32 pair[2];
      Type::put(pair, 0, values[i], i + 1 < kCount ? values[i + 1] : 0.0f);
      constexpr int kWords = 2 * Type::kBytes / 4;
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        if (i * Type::kBytes / 4 + word < (kBytes + 3) / 4) words[i * Type::kBytes / 4 + word] = pair[word];
      }
    }
  }

  __device__ __forceinline__ void store(void* address) const {
#pragma unroll
    for (int piece = 0; piece < kBytes / kPiece; ++piece) {
      u32 piece_words[kPieceWords];
#pragma unroll
      for (int i = 0; i < kPieceWords; ++i) piece_words[i] = words[piece * kPieceWords + i];
      st_stream<kPiece>(static_cast<unsigned char*>(address) + piece * kPiece, piece_words);
    }
  }
};
