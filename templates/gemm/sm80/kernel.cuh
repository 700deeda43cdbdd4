// Products of the gemm family by mma.sync (Ampere, Ada, and what wgmma does not take): cp.async into several stages of
// shared memory, persistent CTAs. bf16, fp16 and tf32 on tensor cores, fp32 by fused multiply-adds; sums in fp32.
// Generated around it: see docs/generated-source.md.
#pragma once
#include "gemm/sm80/products.cuh"
#include "gemm/sm80/store.cuh"
#include "gemm/split_k.cuh"  // where SplitK

template <class Spec, class Config, class Params>
__device__ __forceinline__ void kernel_main(const Params& params) {
  using namespace gemm;
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  static_assert(sizeof(Shared<Config>) == Config::kSharedBytes,
                "the host side and the template disagree on shared memory");
  Shared<Config>& shared = *reinterpret_cast<Shared<Config>*>(shared_bytes);
  typename WarpTile<Config>::Sums sums;
  if constexpr (Config::kSequences) {
    SequenceTiles<Config, Params> tiles(params);
    for (WorkTile tile; tiles.next(tile);) {
      multiply_tile<Config>(shared, params, tile, sums);
      store_tile<Config>(params, tile, sums);
    }
    return;
  }
  const TileScheduler<Config> scheduler(params.rows, Config::kColumns, params.depth, /*share=*/0);
  for (i64 number = scheduler.first(); number < scheduler.count(); number += scheduler.step()) {
    const WorkTile tile = scheduler.tile(number);
    multiply_tile<Config>(shared, params, tile, sums);
    if constexpr (Config::kSplitK > 1) {
      store_partials<Config>(params, tile, sums);
    } else {
      store_tile<Config>(params, tile, sums);
    }
  }
}
