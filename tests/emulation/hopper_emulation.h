// The parts of Hopper that sm90 kernels use, on the processor: mbarriers, the copy engine, wgmma. As late as they may,
// or at any time between: copies when a seed lets them, products when they are waited for.
#pragma once

#include <initializer_list>

#include "tests/emulation/cuda_emulation.h"

#pragma GCC visibility push(default)

namespace emulation {

void init_barrier(unsigned address, unsigned arrivals);
void arrive(unsigned address, unsigned bytes);
void arrive_at_cluster(unsigned address);
void count_bytes(unsigned address, unsigned bytes);  // of a copy to the memory of a block of the cluster
void wait_barrier(unsigned address, unsigned phase);
void sync_named(int id, unsigned threads);
void arrive_named(int id, unsigned threads);  // without waiting
// Pieces of 128 bytes, swizzled.
void load_box(unsigned destination, const void* map, unsigned barrier, int column, int head, int row);
void load_bytes(unsigned destination, const void* source, unsigned bytes, unsigned barrier);
void store_box(unsigned source, const void* map, int column, int head, int row);
void commit_stores();
void finish_stores(size_t pending);

// D (64 x n) += A B, of one step of 16. A is the words of this thread, or what the descriptor `a` says where
// `a_in_registers` is false. An operand in shared memory has K contiguous, or, where it is transposed, M or N.
struct WarpgroupProduct {
  float* sums;
  int n;
  bool accumulate, a_in_registers, a_transposed, b_transposed, bf16;
  unsigned long long a, b;
  unsigned words[4];
};
void multiply_async(const WarpgroupProduct& product);
void commit_products();
void wait_products(size_t pending);

}  // namespace emulation

#define wgmma_fence ptx_wgmma_fence
#define wgmma_commit_group ptx_wgmma_commit_group
#define wgmma_wait_group ptx_wgmma_wait_group
#define wgmma_keep_in_place ptx_wgmma_keep_in_place
#define setmaxnreg_dec ptx_setmaxnreg_dec
#define setmaxnreg_inc ptx_setmaxnreg_inc
#define cluster_index ptx_cluster_index
#define cluster_rank ptx_cluster_rank
#define cluster_blocks ptx_cluster_blocks
#define cluster_sync ptx_cluster_sync
#define cluster_sync_reads ptx_cluster_sync_reads
#define cluster_address ptx_cluster_address
#define ld_cluster_float4 ptx_ld_cluster_float4
#define mbarrier_init ptx_mbarrier_init
#define fence_mbarrier_init ptx_fence_mbarrier_init
#define mbarrier_arrive_expect_tx ptx_mbarrier_arrive_expect_tx
#define mbarrier_arrive_expect_tx_by_warp ptx_mbarrier_arrive_expect_tx_by_warp
#define mbarrier_arrive ptx_mbarrier_arrive
#define mbarrier_wait ptx_mbarrier_wait
#define named_barrier_sync ptx_named_barrier_sync
#define named_barrier_arrive ptx_named_barrier_arrive
#define fence_proxy_async ptx_fence_proxy_async
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/wgmma.cuh"
#include "common/schedule/pipeline.cuh"
#undef mbarrier_init
#undef fence_mbarrier_init
#undef mbarrier_arrive_expect_tx
#undef mbarrier_arrive_expect_tx_by_warp
#undef mbarrier_arrive
#undef mbarrier_wait
#undef named_barrier_sync
#undef named_barrier_arrive
#undef fence_proxy_async
#undef wgmma_fence
#undef wgmma_commit_group
#undef wgmma_wait_group
#undef wgmma_keep_in_place
#undef setmaxnreg_dec
#undef setmaxnreg_inc
#undef cluster_index
#undef cluster_rank
#undef cluster_blocks
#undef cluster_sync
#undef cluster_sync_reads
#undef cluster_address
#undef ld_cluster_float4

inline void wgmma_fence() {}
inline void wgmma_commit_group() { emulation::commit_products(); }
template <int kPending>
void wgmma_wait_group() {
  emulation::wait_products(kPending);
}
template <int kCount>
void wgmma_keep_in_place(float (&)[kCount]) {}
template <int kRegisters>
void setmaxnreg_dec() {}
template <int kRegisters>
void setmaxnreg_inc() {}

inline u32 cluster_index() { return blockIdx.x / emulation::block_count; }
inline u32 cluster_rank() { return emulation::block_rank; }
inline u32 cluster_blocks() { return emulation::block_count; }
inline void cluster_sync() { emulation::meet_cluster(); }
inline void cluster_sync_reads() { emulation::meet_cluster(); }
inline u32 cluster_address(u32 address, u32 rank) {
  return (address & ((1u << emulation::kRankShift) - 1)) | rank << emulation::kRankShift;
}
inline float4 ld_cluster_float4(u32 address) {
  return *reinterpret_cast<const float4*>(emulation::cluster_at(address, sizeof(float4)));
}

inline void mbarrier_init(u32 barrier, u32 arrivals) { emulation::init_barrier(barrier, arrivals); }
inline void fence_mbarrier_init() {}
inline void mbarrier_arrive_expect_tx(u32 barrier, u32 bytes) { emulation::arrive(barrier, bytes); }
inline void mbarrier_arrive_expect_tx_by_warp(u32 barrier, u32 bytes) {
  if (threadIdx.x % 32 == 0) emulation::arrive(barrier, bytes);
}
inline void mbarrier_arrive(u32 barrier) { emulation::arrive(barrier, 0); }
inline void cp_async_arrive(u32 barrier) {
  emulation::commit_copies();
  emulation::wait_copies(0);
  emulation::arrive(barrier, 0);
}
inline void mbarrier_arrive_cluster(u32 barrier) { emulation::arrive_at_cluster(barrier); }
inline void mbarrier_wait(u32 barrier, u32 phase) { emulation::wait_barrier(barrier, phase); }
inline void st_async_float4(u32 address, const float4& value, u32 barrier) {
  *reinterpret_cast<float4*>(emulation::cluster_at(address, sizeof(float4))) = value;
  emulation::count_bytes(barrier, sizeof(float4));
}
#include "common/schedule/cluster_partials.cuh"
#include "common/schedule/release.cuh"
inline void named_barrier_sync(int id, int threads) { emulation::sync_named(id, static_cast<unsigned>(threads)); }
inline void named_barrier_arrive(int id, int threads) { emulation::arrive_named(id, static_cast<unsigned>(threads)); }
inline void fence_proxy_async() {}

inline void cp_async_bulk(u32 destination, const void* source, u32 bytes, u32 barrier) {
  emulation::load_bytes(destination, source, bytes, barrier);
}
inline void cp_async_bulk_by_warp(u32 destination, const void* source, u32 bytes, u32 barrier) {
  if (threadIdx.x % 32 == 0) cp_async_bulk(destination, source, bytes, barrier);
}
inline void prefetch_tensormap(const TensorMap&) {}
inline void prefetch_l2(const void*) {}
inline void cp_async_bulk_tensor_3d(u32 destination, const TensorMap& map, u32 barrier, int column, int head, int row) {
  emulation::load_box(destination, &map, barrier, column, head, row);
}
inline void cp_async_bulk_tensor_2d(u32 destination, const TensorMap& map, u32 barrier, int column, int row) {
  emulation::load_box(destination, &map, barrier, column, 0, row);
}
inline void cp_async_bulk_tensor_2d_multicast(u32 destination, const TensorMap& map, u32 barrier, int column, int row,
                                              u16 ranks) {
  for (u32 rank = 0; rank < 16; ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    emulation::load_box(cluster_address(destination, rank), &map, cluster_address(barrier, rank), column, 0, row);
  }
}
inline void store_bulk_tensor_2d_by_warp(u32 source, const TensorMap& map, int column, int row) {
  if (threadIdx.x % 32 == 0) emulation::store_box(source, &map, column, 0, row);
}
inline void store_bulk_tensor_3d_by_warp(u32 source, const TensorMap& map, int column, int row, int matrix) {
  if (threadIdx.x % 32 == 0) emulation::store_box(source, &map, column, row, matrix);
}
inline void store_bulk_tensor_3d(u32 source, const TensorMap& map, int column, int head, int row) {
  emulation::store_box(source, &map, column, head, row);
}
inline void bulk_commit_group() { emulation::commit_stores(); }
inline void bulk_wait_sources_read() { emulation::finish_stores(0); }
template <int kPending>
void bulk_wait_groups_read() {
  emulation::finish_stores(kPending);
}

inline u64 take_number(u64* counter) { return (*counter)++; }
inline u32 load_acquire(const u32* counter) {
  emulation::pause();
  return *counter;
}
inline void raise_release(u32* counter, u32 value) { *counter = std::max(*counter, value); }
inline void load_sum(const float* from, float& a, float& b, float& c, float& d) {
  a = from[0];
  b = from[1];
  c = from[2];
  d = from[3];
}

// In place of the stmatrix instructions of common/fragment_store.cuh: words[2 * group + half] has columns 8 * group + 2
// * (lane % 4) and the next of row lane / 4 + 8 * half.
template <int kColumns>
void stage_fragment(u32 rows, int tile_bytes, const u32 (&words)[kColumns / 4]) {
  const u32 lane = threadIdx.x % 32;
  for (u32 i = 0; i < kColumns / 4; ++i) {
    const u32 block = i / 2, row = lane / 4 + i % 2 * 8;
    const u32 piece = (block % 8) ^ (row % 8);
    write_shared(rows + row * 128 + block / 8 * tile_bytes + piece * 16 + lane % 4 * 4, words[i]);
  }
  emulation::sync_warp();
}

#pragma GCC visibility pop
