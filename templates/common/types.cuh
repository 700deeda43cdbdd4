// Fixed-width names. NVRTC is given no include path, so <cstdint> is not there.
#pragma once

using u16 = unsigned short;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;
static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8);

// A CUtensorMap as the host encoded it.
struct __align__(64) TensorMap {
  u64 opaque[16];
};

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

constexpr __host__ __device__ int ceil_div(int a, int b) { return (a + b - 1) / b; }
