// Runs generated CUDA that uses mma.sync, ldmatrix and cp.async on the processor: the threads of a cluster of blocks
// are coroutines that wait for one another where the hardware would make them.
//
// The files of templates/common/ are included as they are, but for the functions that hold inline assembly: those are
// included under other names, which nobody calls, and written here anew. A copy by cp.async takes place as late as it
// may, when its group is waited for, and threads take turns in an order that a seed decides: a barrier that is missing
// shows.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#define __device__
#define __host__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

struct EmulatedIndex {
  unsigned x = 0;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
// Byte i of the result is the one of b:a that digit i of the selector names.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
template <class T>
T __ldg(const T* address) {
  return *address;
}

#pragma GCC visibility push(default)  // generated sources are libraries that a test opens

namespace emulation {

struct Grid {
  unsigned blocks = 0, threads = 0;
  size_t shared_bytes = 0;
  unsigned cluster = 1;  // blocks that run at the same time
};

// Runs `kernel` for every thread of every block, one cluster after the other. Throws std::runtime_error when threads
// wait for one another in vain, or when shared memory outside of the block's is touched.
void launch(const Grid& grid, unsigned seed, const std::function<void()>& kernel);

extern EmulatedIndex thread_index, block_index;  // of the thread that runs
extern EmulatedIndex grid_dimension, block_dimension;
extern unsigned char* block_memory;   // its block's dynamic shared memory
extern unsigned char* static_memory;  // behind it
extern unsigned thread_number;        // in its cluster
extern unsigned block_rank, block_count;

// Shared-memory addresses begin at 0 in a cluster's first block; the upper byte of those of the others is their rank.
constexpr unsigned kRankShift = 24;

void sync_block();
// Every lane gives `bytes` bytes and gets those of all 32, one after the other; valid until it exchanges again.
const void* exchange(const void* mine, size_t bytes);
// Checked: within the block's shared memory, which is that of the thread that runs, and aligned to `bytes`.
unsigned char* shared_at(unsigned address, size_t bytes);
// The same for any block of the cluster whose threads have not all ended.
unsigned char* cluster_at(unsigned address, size_t bytes);
// Fails unless an access of so many bytes may be there.
void check_aligned(const void* address, size_t bytes);
void copy_async(unsigned destination, const void* source, size_t bytes, size_t present);  // the others become 0
void commit_copies();
void wait_copies(size_t pending);

// For what stands on these: ends the launch with these words; suspends the thread until `ready`; does something at some
// later time, between turns of threads; meets `threads` threads at a barrier of this number.
[[noreturn]] void fail(const std::string& what);
void wait_until(std::function<bool()> ready);
void pause();  // for a turn of the others
void later(std::function<void()> event);
void meet_named(int id, unsigned threads);
void count_named(int id, unsigned threads);  // one that arrives there and goes on
void meet_cluster();
void declare_shared(size_t bytes);  // that a function of the kernel uses of static_memory
void reset_hopper();                // hopper_emulation.cpp: before each cluster

template <class T>
const T* exchange(const T& mine) {
  return static_cast<const T*>(exchange(&mine, sizeof(T)));
}
inline void sync_warp() { exchange('\0'); }

}  // namespace emulation

#define threadIdx (emulation::thread_index)
#define blockIdx (emulation::block_index)
#define gridDim (emulation::grid_dimension)
#define blockDim (emulation::block_dimension)

// Shared memory as templates name it; emulated_kernel.cpp leaves out its declarations.
#define shared_bytes (emulation::block_memory)
#define static_bytes (emulation::static_memory)  // functions' own, each of which has it while it runs
inline size_t __cvta_generic_to_shared(const void* pointer) {
  const auto offset = static_cast<size_t>(static_cast<const unsigned char*>(pointer) - emulation::block_memory);
  return offset | size_t{emulation::block_rank} << emulation::kRankShift;
}
inline void __syncthreads() { emulation::sync_block(); }

template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return emulation::exchange(value)[lane % 32];
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return emulation::exchange(value)[static_cast<int>(threadIdx.x % 32) ^ mask];
}

inline void __syncwarp() { emulation::sync_warp(); }
inline unsigned __ballot_sync(unsigned, bool vote) {
  const bool* votes = emulation::exchange(vote);
  unsigned mask = 0;
  for (int i = 0; i < 32; ++i) mask |= static_cast<unsigned>(votes[i]) << i;
  return mask;
}
inline unsigned __match_any_sync(unsigned, int value) {
  const int* values = emulation::exchange(value);
  unsigned mask = 0;
  for (int i = 0; i < 32; ++i) mask |= static_cast<unsigned>(values[i] == value) << i;
  return mask;
}
inline unsigned __reduce_add_sync(unsigned, unsigned value) {
  const unsigned* values = emulation::exchange(value);
  unsigned sum = 0;
  for (int i = 0; i < 32; ++i) sum += values[i];
  return sum;
}
template <class T>
T __reduce_max_sync(unsigned, T value) {
  const T* values = emulation::exchange(value);
  return *std::max_element(values, values + 32);
}
template <class T>
T __reduce_min_sync(unsigned, T value) {
  const T* values = emulation::exchange(value);
  return *std::min_element(values, values + 32);
}
inline unsigned __reduce_or_sync(unsigned, unsigned value) {
  const unsigned* values = emulation::exchange(value);
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i) bits |= values[i];
  return bits;
}
template <class T>
T __shfl_up_sync(unsigned, T value, int by) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  return emulation::exchange(value)[lane < by ? lane : lane - by];
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __clz(unsigned bits) { return std::countl_zero(bits); }
inline int __ffs(unsigned bits) { return bits == 0 ? 0 : std::countr_zero(bits) + 1; }

// Threads take turns, and a turn ends where one waits.
template <class T>
T atomicAdd(T* address, T value) {
  const T before = *address;
  *address += value;
  return before;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}

using std::max;
using std::min;

#define ldmatrix_x4 ptx_ldmatrix_x4
#define ldmatrix_x4_trans ptx_ldmatrix_x4_trans
#define ldmatrix_x2_trans ptx_ldmatrix_x2_trans
#define mma_m16n8k16_bf16 ptx_mma_m16n8k16_bf16
#define mma_m16n8k16_f16 ptx_mma_m16n8k16_f16
#define mma_m16n8k8_tf32 ptx_mma_m16n8k8_tf32
#define cvt_rna_tf32 ptx_cvt_rna_tf32
#define pack_pair ptx_pack_pair
#define stage_fragment ptx_stage_fragment
#define cp_async ptx_cp_async
#define cp_async_arrive ptx_cp_async_arrive
#define cp_async_commit_group ptx_cp_async_commit_group
#define cp_async_first_bytes ptx_cp_async_first_bytes
#define cp_async_wait_group ptx_cp_async_wait_group
#define ld_shared_u32 ptx_ld_shared_u32
#define ld_shared_float2 ptx_ld_shared_float2
#define ld_shared_float4 ptx_ld_shared_float4
#define st_shared_u32 ptx_st_shared_u32
#define st_shared_float2 ptx_st_shared_float2
#define st_shared_float4 ptx_st_shared_float4
#define st_shared_uint4 ptx_st_shared_uint4
#define fast_tanh ptx_fast_tanh
#define fast_exp ptx_fast_exp
#define fast_exp2 ptx_fast_exp2
#define fast_reciprocal ptx_fast_reciprocal
#define fast_log2 ptx_fast_log2
#define fast_log ptx_fast_log
#define fast_divide ptx_fast_divide
#define fast_sqrt ptx_fast_sqrt
#define ld_global_nc_u32 ptx_ld_global_nc_u32
#define ld_global_nc_u16 ptx_ld_global_nc_u16
#define cvt_f32_f16 ptx_cvt_f32_f16
#define unpack_low ptx_unpack_low
#define unpack_high ptx_unpack_high
#define fma_x2 ptx_fma_x2
#define round_to_f16x2 ptx_round_to_f16x2
#define round_to_bf16x2 ptx_round_to_bf16x2
#define half_to_float ptx_half_to_float
#define st_stream ptx_st_stream
#define ld_stream ptx_ld_stream
#define fast_rsqrt ptx_fast_rsqrt
#define bits_from ptx_bits_from
#include "common/bits.cuh"
#include "common/element.cuh"
#include "common/fragment_store.cuh"
#include "common/math.cuh"
#include "common/philox.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/cp_async_arrive.cuh"
#include "common/ptx/fma_x2.cuh"
#include "common/ptx/ld_global.cuh"
#include "common/ptx/ldst_shared.cuh"
#include "common/ptx/mma.cuh"
#include "common/ptx/stream.cuh"
#include "common/types.cuh"
#undef ldmatrix_x4
#undef ldmatrix_x4_trans
#undef ldmatrix_x2_trans
#undef mma_m16n8k16_bf16
#undef mma_m16n8k16_f16
#undef mma_m16n8k8_tf32
#undef cvt_rna_tf32
#undef pack_pair
#undef stage_fragment
#undef cp_async
#undef cp_async_arrive
#undef cp_async_commit_group
#undef cp_async_first_bytes
#undef cp_async_wait_group
#undef ld_shared_u32
#undef ld_shared_float2
#undef ld_shared_float4
#undef st_shared_u32
#undef st_shared_float2
#undef st_shared_float4
#undef st_shared_uint4
#undef fast_tanh
#undef fast_exp
#undef fast_exp2
#undef fast_reciprocal
#undef fast_log2
#undef fast_log
#undef fast_divide
#undef fast_sqrt
#undef ld_global_nc_u32
#undef ld_global_nc_u16
#undef cvt_f32_f16
#undef unpack_low
#undef unpack_high
#undef fma_x2
#undef round_to_f16x2
#undef round_to_bf16x2
#undef half_to_float
#undef st_stream
#undef ld_stream
#undef fast_rsqrt
#undef bits_from

inline u32 bits_from(int first) { return first >= 32 ? 0 : ~0u << std::max(first, 0); }

// The hardware's is off by up to 2^-11 of the value, and so is this one.
inline float fast_tanh(float x) { return std::bit_cast<float>((std::bit_cast<u32>(std::tanh(x)) + 0x1000) & ~0x1fffu); }
inline float fast_exp(float x) { return std::exp(x); }
inline float fast_exp2(float x) { return std::exp2(x); }
inline float fast_log2(float x) { return std::log2(x); }
inline float fast_log(float x) { return std::log(x); }
inline float fast_reciprocal(float x) { return 1 / x; }
inline float fast_divide(float x, float y) { return x / y; }
inline float fast_sqrt(float x) { return std::sqrt(x); }
inline float fast_rsqrt(float x) { return 1 / std::sqrt(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }

u32 ld_global_nc_u32(const void* address, bool valid);
u32 ld_global_nc_u16(const void* address, bool valid);
float unpack_16bit(bool bf16, u32 half);
template <bool kBf16>
float unpack_low(u32 word) {
  return unpack_16bit(kBf16, word & 0xffff);
}
template <bool kBf16>
float unpack_high(u32 word) {
  return unpack_16bit(kBf16, word >> 16);
}

u32 cvt_rna_tf32(float x);
u32 pack_16bit(bool bf16, float low, float high);
template <bool kBf16>
u32 fma_x2(u32 a, u32 b, u32 c) {
  return pack_16bit(kBf16, std::fma(unpack_low<kBf16>(a), unpack_low<kBf16>(b), unpack_low<kBf16>(c)),
                    std::fma(unpack_high<kBf16>(a), unpack_high<kBf16>(b), unpack_high<kBf16>(c)));
}
template <bool kBf16>
u32 pack_pair(float low, float high) {
  return pack_16bit(kBf16, low, high);
}

void ldmatrix_x4(u32 (&words)[4], u32 address);
void ldmatrix_x4_trans(u32 (&words)[4], u32 address);
void ldmatrix_x2_trans(u32 (&words)[2], u32 address);
void mma_m16n8k16_bf16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);
void mma_m16n8k16_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);
void mma_m16n8k8_tf32(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);

template <class T>
T read_shared(u32 address) {
  return *reinterpret_cast<const T*>(emulation::shared_at(address, sizeof(T)));
}
template <class T>
void write_shared(u32 address, const T& value) {
  *reinterpret_cast<T*>(emulation::shared_at(address, sizeof(T))) = value;
}
inline u32 ld_shared_u32(u32 address) { return read_shared<u32>(address); }
inline float2 ld_shared_float2(u32 address) { return read_shared<float2>(address); }
inline float4 ld_shared_float4(u32 address) { return read_shared<float4>(address); }
inline void st_shared_u32(u32 address, u32 word) { write_shared(address, word); }
inline void st_shared_float2(u32 address, float x, float y) { write_shared(address, float2{x, y}); }
inline void st_shared_float4(u32 address, float x, float y, float z, float w) {
  write_shared(address, float4{x, y, z, w});
}
inline void st_shared_uint4(u32 address, uint4 words) { write_shared(address, words); }

template <int kBytes, bool kOnce>
void ld_stream(u32 (&words)[(kBytes + 3) / 4], const void* address) {
  emulation::check_aligned(address, kBytes);
  words[0] = 0;
  std::copy_n(static_cast<const unsigned char*>(address), kBytes, reinterpret_cast<unsigned char*>(words));
}
template <int kBytes>
void st_stream(void* address, const u32 (&words)[(kBytes + 3) / 4]) {
  emulation::check_aligned(address, kBytes);
  std::copy_n(reinterpret_cast<const unsigned char*>(words), kBytes, static_cast<unsigned char*>(address));
}
inline void add_global(float* to, float a, float b, float c, float d) {
  emulation::check_aligned(to, 16);
  to[0] += a;
  to[1] += b;
  to[2] += c;
  to[3] += d;
}
inline void add_global_if(bool wanted, float* to, float a, float b, float c, float d) {
  if (wanted) add_global(to, a, b, c, d);
}
inline float half_to_float(u32 half) { return unpack_16bit(false, half); }
inline u32 round_to_bf16x2(float low, float high) { return pack_16bit(true, low, high); }
inline u32 round_to_f16x2(float low, float high) { return pack_16bit(false, low, high); }
inline float max_nan(float a, float b) { return a != a || a > b ? a : b; }
inline float min_nan(float a, float b) { return a != a || a < b ? a : b; }
#include "common/compensated.cuh"
#include "common/floor_div_wide.cuh"
#include "common/pack.cuh"
#include "common/precise.cuh"
#include "common/rounded_to.cuh"
#include "common/wide_to_float.cuh"

template <int kBytes>
void cp_async(u32 destination, const void* source, bool valid) {
  emulation::copy_async(destination, source, kBytes, valid ? kBytes : 0);
}
inline void cp_async_first_bytes(u32 destination, const void* source, u32 bytes) {
  emulation::copy_async(destination, source, 16, bytes);
}
inline void cp_async_commit_group() { emulation::commit_copies(); }
template <int kPending>
void cp_async_wait_group() {
  emulation::wait_copies(kPending);
}

#pragma GCC visibility pop
