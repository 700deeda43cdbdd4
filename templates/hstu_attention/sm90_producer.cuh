// hstu_attention forward on Hopper: the producer warp, which walks tiles and column blocks and feeds the pipeline, and
// the tail warp, which zeroes V rows past the end of a sequence.
#pragma once
#include "common/regions.cuh"
#include "common/tma.cuh"
#include "hstu_attention/sm90_schedule.cuh"

namespace sm90 {

// The column blocks of a tile that some of its rows may see, in ascending order. Used by one whole warp, all lanes in
// step: each lane classifies one block, so that 32 blocks cost one evaluation of the mask.
template <class Config>
class VisibleBlocks {
 public:
  __device__ __forceinline__ VisibleBlocks(const Sequence& sequence, int row0, int row_end)
      : sequence_(sequence), row0_(row0) {
    mask_columns(row0, row_end - 1, sequence.rows, sequence.targets, column_, column_end_);
    classify();
  }

  __device__ __forceinline__ bool empty() const { return visible_ == 0; }

  __device__ __forceinline__ BlockInfo pop() {
    const int index = __ffs(visible_) - 1;
    BlockInfo block = {column_ + index * Config::kBlockN, 0, 0, 0};
#pragma unroll
    for (int w = 0; w < Config::kConsumers; ++w) {
      block.may |= (may_[w] >> index & 1) << w;
      block.must |= (must_[w] >> index & 1) << w;
    }
    visible_ &= visible_ - 1;
    if (visible_ == 0) {
      column_ += 32 * Config::kBlockN;
      classify();
    }
    block.last = visible_ == 0;
    return block;
  }

 private:
  // Classifies 32 blocks from column_ on, further ones when none of these is visible.
  __device__ __forceinline__ void classify() {
    for (; column_ < column_end_; column_ += 32 * Config::kBlockN) {
      const int first_column = column_ + static_cast<int>(threadIdx.x % 32) * Config::kBlockN;
#pragma unroll
      for (int w = 0; w < Config::kConsumers; ++w) {
        const int first_row = row0_ + w * kWarpgroupRows;
        bool must = false, may = false;
        if (first_row < sequence_.rows && first_column < column_end_) {
          mask_tile(first_row, min(first_row + kWarpgroupRows, sequence_.rows) - 1, first_column,
                    first_column + Config::kBlockN - 1, sequence_.rows, sequence_.targets, must, may);
        }
        may_[w] = __ballot_sync(~0u, may);
        must_[w] = __ballot_sync(~0u, must);
        visible_ |= may_[w];
      }
      if (visible_ != 0) return;
    }
  }

  const Sequence& sequence_;
  const int row0_;
  int column_;  // first column of block 0 of the bit masks
  int column_end_;
  u32 visible_ = 0;  // bit i: block i is still to come
  u32 may_[Config::kConsumers];
  u32 must_[Config::kConsumers];
};

template <int kTiles, int kRows>
__device__ __forceinline__ void load_operand(u32 destination, const TensorMap& map, u32 barrier, int head, int row) {
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    cp_async_bulk_tensor_3d(destination + tile * kRows * kSwizzleBytes, map, barrier, tile * kSwizzleColumns, head,
                            row);
  }
}

template <class Spec, class Config, class Params>
__device__ void produce(Shared<Config>& shared, const Params& params) {
  using Bytes = Tiles<Config>;
  const bool leader = threadIdx.x % 32 == 0;
  Schedule<Spec, Config, Params> schedule(shared, params);
  Ring<Config::kQueryStages> query;
  Ring<Config::kStages> ring;
  u32 tail_parity = 0;
  Tile tile;
  Sequence sequence;
  while (schedule.next(tile, sequence)) {
    const int row0 = tile.row_tile * Config::kBlockM;
    VisibleBlocks<Config> blocks(sequence, row0, min(row0 + Config::kBlockM, sequence.rows));

    const u32 q_full = shared_address(&shared.q_full[query.stage()]);
    mbarrier_wait(shared_address(&shared.q_empty[query.stage()]), query.parity() ^ 1);
    if (leader) {
      shared.tile[query.stage()] = {sequence.start,  row0, sequence.rows, sequence.targets, tile.head,
                                    !blocks.empty(), 0};
      if (!blocks.empty()) {
        mbarrier_arrive_expect_tx(q_full, Bytes::kQueryBytes);
        load_operand<Config::kQkTiles, Config::kBlockM>(shared_address(shared.q[query.stage()]), params.q_map, q_full,
                                                        tile.head, static_cast<int>(sequence.start) + row0);
      } else {
        mbarrier_arrive(q_full);
      }
    }
    __syncwarp();
    query.advance();

    while (!blocks.empty()) {
      const BlockInfo block = blocks.pop();
      const int row = static_cast<int>(sequence.start) + block.column0;
      const int s = ring.stage();
      // With one consumer, it zeroes the rows past the sequence's end itself.
      const bool tail = kTailWarp<Config> && block.column0 + Config::kBlockN > sequence.rows;
      mbarrier_wait(shared_address(&shared.k_empty[s]), ring.parity() ^ 1);
      if (leader) {
        const u32 k_full = shared_address(&shared.k_full[s]);
        shared.block[s] = block;
        mbarrier_arrive_expect_tx(k_full, Bytes::kKeyBytes);
        load_operand<Config::kQkTiles, Config::kBlockN>(shared_address(shared.k[s]), params.k_map, k_full, tile.head,
                                                        row);
      }
      mbarrier_wait(shared_address(&shared.v_empty[s]), ring.parity() ^ 1);
      if (tail) {
        mbarrier_wait(shared_address(&shared.tail_empty), tail_parity ^ 1);
        tail_parity ^= 1;
      }
      if (leader) {
        const u32 v_full = tail ? shared_address(&shared.tail_full) : shared_address(&shared.v_full[s]);
        if (tail) shared.tail = {s, sequence.rows - block.column0};
        mbarrier_arrive_expect_tx(v_full, Bytes::kValueBytes);
        load_operand<Config::kPvTiles, Config::kBlockN>(shared_address(shared.v[s]), params.v_map, v_full, tile.head,
                                                        row);
      }
      __syncwarp();
      ring.advance();
    }
  }
  mbarrier_wait(shared_address(&shared.q_empty[query.stage()]), query.parity() ^ 1);
  if (leader) {
    shared.tile[query.stage()].done = 1;
    mbarrier_arrive(shared_address(&shared.q_full[query.stage()]));
  }
  if constexpr (kTailWarp<Config>) {
    mbarrier_wait(shared_address(&shared.tail_empty), tail_parity ^ 1);
    if (leader) {
      shared.tail.stage = -1;
      mbarrier_arrive(shared_address(&shared.tail_full));
    }
  }
}

// Zeroes V rows past their sequence's end, as the producer announces them. One warp.
template <class Config>
__device__ void zero_tails(Shared<Config>& shared) {
  const int lane = threadIdx.x % 32;
  u32 parity = 0;
  while (true) {
    mbarrier_wait(shared_address(&shared.tail_full), parity);
    parity ^= 1;
    const TailInfo tail = shared.tail;
    if (tail.stage < 0) return;
    zero_rows(shared, tail.stage, tail.first_row, lane, 32);
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) mbarrier_arrive(shared_address(&shared.v_full[tail.stage]));
    release_warp<Config>(shared.tail_empty);
  }
}

}  // namespace sm90
