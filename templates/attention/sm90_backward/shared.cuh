// Attention backward on Hopper: what a block keeps in shared memory, and the roles of a block.
#pragma once
#include "attention/sm90_forward/shared.cuh"
#include "common/ptx/barrier.cuh"

namespace sm90::backward {

// A tile is kept while blocks stream past it; both are pairs of operands, of which the first has kAttnDim columns and
// the second kHiddenDim. All that the roles compute alike is S = first first^T and dP = second second^T.
//
//            kept tile           streamed blocks     sums
//  kRows     rows of q, dout     columns of k, v     dq += dS k
//  kColumns  columns of k, v     rows of q, dout     dk += dS^T q, dv += P^T dout
//  kKeys     columns of k, v     rows of q, dout     dk += dS^T q
//  kValues   columns of k, v     rows of q, dout     dv += P^T dout, and no dP
//
// A kernel has kRows and kColumns, or, where no registers hold two sums, kRows, kKeys and kValues.
//
// "Line" is a row of q and dout or a column, which is a row of k and v.
enum class Role { kRows, kColumns, kKeys, kValues, kNone };

// Roles in order: those that take longest come first.
template <class Config>
constexpr __device__ Role role_at(int index) {
  if (Config::kRoles <= 2) return index == 0 ? Role::kColumns : Role::kRows;
  return index == 0 ? Role::kKeys : index == 1 ? Role::kRows : Role::kValues;
}

constexpr int kOperands = 2;  // of a pair: so many loads arrive on a barrier

// Bytes of one buffer.
template <class Config>
struct Tiles {
  static_assert(Config::kTailBoxRows == kTailBoxRows, "tensor maps of pieces have boxes of this many rows");
  static constexpr int kKeptFirst = Config::kQkTiles * Config::kBlockM * kSwizzleBytes;
  static constexpr int kKeptSecond = Config::kPvTiles * Config::kBlockM * kSwizzleBytes;
  static constexpr int kStreamedFirst = Config::kQkTiles * Config::kBlockN * kSwizzleBytes;
  static constexpr int kStreamedSecond = Config::kPvTiles * Config::kBlockN * kSwizzleBytes;
};

// Whether what tiles of columns add to dq is added in a fixed order (sm90_backward_order.cuh).
template <class Config>
constexpr bool kFixedOrder = Config::kScheduleOrdered || Config::kScheduleWhole;

// Whether kernels have to know a tile's sequence by its number.
template <class Spec, class Config>
constexpr bool kKeepSequence = Spec::kRabHeads > 0 || Config::kScheduleOrdered;

// A tile of one (sequence, head), as the producer describes it to the consumers.
struct TileInfo {
  i64 start;    // row of the tensors that holds the sequence's row 0
  int line0;    // first line of the tile, within the sequence
  int rows;     // n
  int targets;  // t
  int head;
  int has_blocks;  // 0: nothing has to do with these lines, their gradients are zero; else, where kKeepSequence, 1 +
                   // the number of the sequence
  Role role;       // kNone: no more tiles; the other members are unset
};

// Layout of operands as in sm90::Shared.
template <class Config>
struct Shared {
  unsigned char kept_first[Config::kKeptStages][Tiles<Config>::kKeptFirst];
  unsigned char kept_second[Config::kKeptStages][Tiles<Config>::kKeptSecond];
  unsigned char streamed_first[Config::kStages][Tiles<Config>::kStreamedFirst];
  unsigned char streamed_second[Config::kStages][Tiles<Config>::kStreamedSecond];
  u64 kept_full[Config::kKeptStages];
  u64 kept_empty[Config::kKeptStages];
  u64 kept_staged[Config::kKeptStages];
  u64 streamed_full[Config::kStages];
  u64 streamed_empty[Config::kStages];
  u64 tail_full;
  u64 tail_empty;
  TileInfo tile[Config::kKeptStages];
  // Of each tile, for consumers that have no register to keep it.
  PipelineState<Config::kKeptStages> place[Config::kKeptStages];
  BlockInfo block[Config::kStages];
  TailInfo tail;
  u32 tail_phase;  // of the next pass of tail_empty; the producer's, which has no register for it
  // As in sm90::Shared; "whole" needs nothing but the order.
  int schedule_total;
  int schedule_sequences;
  int schedule_paired;
  u32 schedule_first[(Config::kScheduleWhole ? 0 : Config::kScheduleSequences) + 1];
  u16 schedule_order[Config::kScheduleSequences];
};

// Zeroes the lines from `first_line` on of a streamed block: they belong to the next sequence. What a tile has to do
// with them is 0, but 0 * NaN is NaN.
template <class Config>
__device__ __forceinline__ void zero_lines(Shared<Config>& shared, int stage, int first_line, int thread, int threads) {
  zero_operand_rows<Config::kQkTiles, Config::kBlockN>(shared.streamed_first[stage], first_line, thread, threads);
  zero_operand_rows<Config::kPvTiles, Config::kBlockN>(shared.streamed_second[stage], first_line, thread, threads);
}

// Arrivals of all consumer warps.
template <class Config>
constexpr int kConsumerReleases = Config::kConsumers * kWarpgroup / 32 * kArrivalsPerWarp<Config>;

template <class Config>
__device__ __forceinline__ void init_barriers(Shared<Config>& shared) {
  constexpr int kReleases = kConsumerReleases<Config>;
  constexpr int kOrderWarps = Config::kScheduleOrdered ? 2 : 0;                    // see semaphore_warps.cuh
  constexpr int kOtherWarps = kOrderWarps > 0 ? kOrderWarps : Config::kStoreWarp;  // the storing one is one of those
  for (int i = 0; i < Config::kKeptStages; ++i) {
    mbarrier_init(shared_address(&shared.kept_full[i]), kOperands);
    mbarrier_init(shared_address(&shared.kept_empty[i]),
                  (Config::kStoreWarp ? 0 : kReleases) + kOtherWarps * kArrivalsPerWarp<Config>);
    mbarrier_init(shared_address(&shared.kept_staged[i]), kReleases);
  }
  for (int i = 0; i < Config::kStages; ++i) {
    mbarrier_init(shared_address(&shared.streamed_full[i]), kOperands);
    mbarrier_init(shared_address(&shared.streamed_empty[i]), kReleases + kOrderWarps * kArrivalsPerWarp<Config>);
  }
  mbarrier_init(shared_address(&shared.tail_full), kOperands);
  mbarrier_init(shared_address(&shared.tail_empty), kArrivalsPerWarp<Config>);
  fence_mbarrier_init();
  shared.tail_phase = 0;
}

// Arrives in place of the loads of a pair.
__device__ __forceinline__ void arrive_for_pair(u64& barrier) {
  for (int i = 0; i < kOperands; ++i) mbarrier_arrive(shared_address(&barrier));
}

}  // namespace sm90::backward
