// Parts of a tile's sums, fp32, each in the shared memory of a CTA of a cluster: rows after one another. They are
// always added up in the order of the CTAs, so that the same launch gives the same bits.
#pragma once
#include "common/ptx/cluster.cuh"
#include "common/ptx/ldst_shared.cuh"

namespace sm90 {

// The padding spreads a fragment's rows over the banks.
template <int kColumns>
constexpr int kPartialRowBytes = (kColumns + 8) * 4;

// This thread's fragment of a warpgroup's 64 rows. `row` is the address of its first one.
template <int kColumns>
__device__ __forceinline__ void store_partial(u32 row, const float (&sums)[kColumns / 2], bool started = true) {
  const u32 first = row + threadIdx.x % 4 * 8;
#pragma unroll
  for (int i = 0; i < kColumns / 4; ++i) {
    const u32 address = first + i / 2 * 32 + i % 2 * 8 * kPartialRowBytes<kColumns>;
    st_shared_float2(address, started ? sums[2 * i] : 0.0f, started ? sums[2 * i + 1] : 0.0f);
  }
}

// The total of four neighbours over the cluster's first CTAs, which have them at this address of theirs.
__device__ __forceinline__ float4 add_partials_at(u32 address, u32 ctas) {
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8  // as many reads on their way
  for (u32 rank = 0; rank < ctas; ++rank) {
    const float4 partial = ld_cluster_float4(cluster_address(address, rank));
    sum.x += partial.x, sum.y += partial.y, sum.z += partial.z, sum.w += partial.w;
  }
  return sum;
}

}  // namespace sm90
