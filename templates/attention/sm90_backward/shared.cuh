// Attention backward on Hopper: the shared memory of a CTA, and the roles of a tile.
#pragma once
#include "attention/sm90_backward/followed_tile.cuh"  // where kQTileWarp
#include "attention/sm90_forward/shared.cuh"
#include "common/ptx/barrier.cuh"

namespace sm90::backward {

// A stationary tile stays while moving tiles pass through the pipeline; both are pairs of operands, of which the first
// has kAttnDim columns and the second kHiddenDim. All that the roles compute alike is S = first first^T and dP = second
// second^T.
//
//            stationary tile     moving tiles        accumulators
//  kRows     rows of q, dout     columns of k, v     dq += dS k
//  kColumns  columns of k, v     rows of q, dout     dk += dS^T q, dv += P^T dout
//  kKeys     columns of k, v     rows of q, dout     dk += dS^T q
//  kValues   columns of k, v     rows of q, dout     dv += P^T dout, and no dP
//
// A kernel has kRows and kColumns, or, where no registers hold two sums, kRows, kKeys and kValues.
//
// "Row" without more is a row of an operand: of q and dout, or of k and v, which is a column of S.
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
  static_assert(Config::kTailBoxRows == kTailBoxRows, "tail-box tensor maps have boxes of this many rows");
  static constexpr int kStationaryFirst = Config::kQkTiles * Config::kBlockM * kSwizzleBytes;
  static constexpr int kStationarySecond = Config::kPvTiles * Config::kBlockM * kSwizzleBytes;
  static constexpr int kMovingFirst = Config::kQkTiles * Config::kBlockN * kSwizzleBytes;
  static constexpr int kMovingSecond = Config::kPvTiles * Config::kBlockN * kSwizzleBytes;
};

// Whether what KV tiles add to dq is added in a fixed order (accumulation_order.cuh).
template <class Config>
constexpr bool kFixedOrder = Config::kScheduleSemaphore || Config::kSchedulePerSequence;

// Whether kernels have to know a tile's sequence by its number.
#ifdef kAttnFunc
template <class Spec, class Config>
constexpr bool kKeepSequence = true;
#else
template <class Spec, class Config>
constexpr bool kKeepSequence = Spec::Bias::kHeads > 0 || Config::kScheduleSemaphore;
#endif

// A tile of one (sequence, head), as the producer describes it to the consumers.
struct TileInfo {
  i64 start;    // row of the tensors that holds the sequence's row 0
  int row0;     // first row of the tile, within the sequence
  int rows;     // n
#ifdef kSequenceCounts
  SequenceCounts targets;  // t
#elifdef kAttnFunc
  RowIntervals targets;  // in place of t
#else
  int targets;  // t
#endif
  int head;
  int work;   // 0: no pair has these rows, their gradients are zero; else 1 or, where kKeepSequence, sequence() + 1
  Role role;  // kNone: no more tiles; the other members are unset

  __device__ __forceinline__ bool has_work() const { return work != 0; }
  __device__ __forceinline__ int sequence() const { return work - 1; }  // its number in the batch, where kKeepSequence
  __device__ __forceinline__ void set_sequence(int sequence) { work = sequence + 1; }
};

// Layout of operands as in sm90::Shared.
template <class Config>
struct Shared {
  unsigned char stationary_first[Config::kStationaryStages][Tiles<Config>::kStationaryFirst];
  unsigned char stationary_second[Config::kStationaryStages][Tiles<Config>::kStationarySecond];
  unsigned char moving_first[Config::kStages][Tiles<Config>::kMovingFirst];
  unsigned char moving_second[Config::kStages][Tiles<Config>::kMovingSecond];
  u64 stationary_full[Config::kStationaryStages];
  u64 stationary_empty[Config::kStationaryStages];
  u64 stationary_staged[Config::kStationaryStages];
  u64 moving_full[Config::kStages];
  u64 moving_empty[Config::kStages];
  u64 tail_full;
  u64 tail_empty;
  TileInfo tile[Config::kStationaryStages];
  // Of each tile, for consumers that have no register for it.
  PipelineState<Config::kStationaryStages> stationary_state[Config::kStationaryStages];
  MovingTileInfo moving_tile[Config::kStages];
  TailInfo tail;
  u32 tail_phase;  // of the next pass of tail_empty; the producer's, which has no register for it
  // As in sm90::Shared; "per_sequence" needs nothing but the order.
  int schedule_total;
  int schedule_sequences;
  int schedule_paired;
  u32 schedule_first[(Config::kSchedulePerSequence ? 0 : Config::kScheduleSequences) + 1];
  u16 schedule_order[Config::kScheduleSequences];
};

// Whether a warp of the producer's warpgroup zeroes the rows of moving tiles past their end. Not in packed tiles, whose
// consumers read moving tiles to find what is not finite: they zero those rows themselves first.
template <class Config>
constexpr bool kTailWarp = sm90::kTailWarp<Config> && !Config::kPackSequences;

// Zeroes the rows from `first_row` on of a moving tile: they belong to the next sequence. What a tile has to do
// with them is 0, but 0 * NaN is NaN.
template <class Config>
__device__ __forceinline__ void zero_tail_rows(Shared<Config>& shared, int stage, int first_row, int thread,
                                               int threads) {
  zero_operand_rows<Config::kQkTiles, Config::kBlockN>(shared.moving_first[stage], first_row, thread, threads);
  zero_operand_rows<Config::kPvTiles, Config::kBlockN>(shared.moving_second[stage], first_row, thread, threads);
}

#ifdef kQTileWarp
// Arrivals for a moving tile: of its loads and, in the kernel with a tail warp, of that warp.
template <class Config>
constexpr int kMovingArrivals = kOperands + (kTailWarp<Config> ? kFollowerArrivals<Config> : 0);

#endif
// Arrivals of all consumer warps.
template <class Config>
constexpr int kConsumerReleases = Config::kConsumers * kWarpgroup / 32 * kArrivalsPerWarp<Config::kLanesArrive>;

template <class Config>
__device__ __forceinline__ void init_barriers(Shared<Config>& shared) {
  constexpr int kReleases = kConsumerReleases<Config>;
  constexpr int kOrderWarps = Config::kScheduleSemaphore ? 2 : 0;                  // see semaphore_warps.cuh
  constexpr int kOtherWarps = kOrderWarps > 0 ? kOrderWarps : Config::kStoreWarp;  // the storing one is one of those
  for (int i = 0; i < Config::kStationaryStages; ++i) {
    mbarrier_init(shared_address(&shared.stationary_full[i]), kOperands);
    mbarrier_init(shared_address(&shared.stationary_empty[i]),
                  (Config::kStoreWarp ? 0 : kReleases) + kOtherWarps * kArrivalsPerWarp<Config::kLanesArrive>);
    mbarrier_init(shared_address(&shared.stationary_staged[i]), kReleases);
  }
  for (int i = 0; i < Config::kStages; ++i) {
#ifdef kQTileWarp
    mbarrier_init(shared_address(&shared.moving_full[i]), kMovingArrivals<Config>);
#else
    mbarrier_init(shared_address(&shared.moving_full[i]), kOperands);
#endif
    mbarrier_init(shared_address(&shared.moving_empty[i]),
                  kReleases + kOrderWarps * kArrivalsPerWarp<Config::kLanesArrive>);
  }
  mbarrier_init(shared_address(&shared.tail_full), kOperands);
  mbarrier_init(shared_address(&shared.tail_empty), kArrivalsPerWarp<Config::kLanesArrive>);
  fence_mbarrier_init();
  shared.tail_phase = 0;
}

// Arrives in place of the loads of a pair.
__device__ __forceinline__ void arrive_for_pair(u64& barrier) {
  for (int i = 0; i < kOperands; ++i) mbarrier_arrive(shared_address(&barrier));
}

}  // namespace sm90::backward
