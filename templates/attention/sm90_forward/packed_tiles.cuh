// Attention on Hopper, with kPackSequences: which packed tiles a CTA works on, and what they see.
//
// Tiles are numbered in the order of their rows, and of heads within the same rows; no sequence decides where one
// begins. Their number follows from the offsets' last element, so that a tile costs no look-up but that of its own
// sequences. CTAs take them in turn, in alternating direction, as those at the end of a long sequence see most columns.
// Where a kernel has several roles (sm90_backward/shared.cuh), the tiles of one follow those of the one before.
#pragma once
#include "attention/sequence.cuh"
#include "attention/schedule/packed_rows.cuh"
#include "attention/sm90_forward/producer.cuh"

namespace sm90 {

// Description of a tile in the lanes of the producer warp.
struct PackedWork {
  int head;
  int row0, row1;     // its first row, and its last one that a sequence has
  PackedRow rows[2];  // of this lane's rows, `row0` + lane and 32 further on
  PackedRow first, last;  // of row0 and row1
  bool mixed;             // these are two sequences
  int moving_begin, moving_end;  // what moving tiles have to have; moving_end <= moving_begin: nothing
};

__device__ __forceinline__ PackedRow row_of_lane(const PackedRow& own, int lane) {
  return {__shfl_sync(~0u, own.start, lane), __shfl_sync(~0u, own.rows, lane), __shfl_sync(~0u, own.targets, lane)};
}

// A sequence as a View of the mask takes it.
__device__ __forceinline__ Sequence sequence_of_row(const PackedRow& row) {
  return {row.start, row.rows, row.targets, 0, row.start};
}

// Walks this CTA's tiles of a role, the kIndex-th; by one whole warp, all lanes in step. `View` says what they see.
template <class Spec, class Config, class Params, class View = RowsView, int kIndex = 0>
class PackedTiles {
 public:
  __device__ __forceinline__ explicit PackedTiles(const Params& params)
      : params_(params),
        batch_(static_cast<int>(params.batch)),
        row_end_(static_cast<int>(
            min(max(static_cast<i64>(params.seq_offsets[params.batch]), 0ll), params.total_rows))) {
    if constexpr (kIndex > 0) {
      first_ = kIndex * static_cast<i64>(row_end_ / Config::kBlockM + (row_end_ % Config::kBlockM != 0)) * Spec::kHeads;
      round_ = first_ / gridDim.x;  // in which the role before ends
    }
  }

  // Rows of the tensors that sequences have.
  __device__ __forceinline__ int row_end() const { return row_end_; }

  // False when there are no more tiles.
  __device__ __forceinline__ bool next(PackedWork& work) {
    i64 number;
    do {
      const int across = round_ % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
      number = round_++ * gridDim.x + across - first_;
    } while (kIndex > 0 && number < 0);
    const i64 row0 = number / Spec::kHeads * Config::kBlockM;
    if (row0 >= row_end_) return false;
    work.head = static_cast<int>(number % Spec::kHeads);
    work.row0 = static_cast<int>(row0);
    work.row1 = min(work.row0 + Config::kBlockM, row_end_) - 1;
    find_rows(work);
    find_moving(work);
    return true;
  }

 private:
  static_assert(Config::kBlockM == 64, "a lane has two rows of a tile");

  // The last sequence that begins at `row` or before it. The first probes are the same for every tile, and in L1.
  __device__ __forceinline__ int find_sequence(int row) const {
    const int lane = threadIdx.x % 32;
    int low = 0, high = batch_;
#pragma unroll 1
    while (high - low > 1) {
      const int step = ceil_div(high - low, 33), probe = low + (lane + 1) * step;
      const bool before = probe < high && params_.seq_offsets[probe] <= row;
      low += __popc(__ballot_sync(~0u, before)) * step;
      high = min(high, low + step);
    }
    return low;
  }

  // Looks at 32 sequences at a time, from that of row0 on: a lane has one of them, and asks the others which has its
  // rows. Sequences without rows, of which there may be any number, are not gone through.
  __device__ __forceinline__ void find_rows(PackedWork& work) const {
    const int lane = threadIdx.x % 32;
    work.rows[0] = work.rows[1] = {0, 0, 0};
    int first = find_sequence(work.row0);
#pragma unroll 1
    while (true) {
      const int index = first + lane;
      constexpr int kBehind = 0x7fffffff;
      PackedRow own = {kBehind, 0, 0};
      if (index < batch_) {
        const Sequence sequence =
            load_sequence(params_.seq_offsets, num_targets_of<Spec>(params_), index, params_.total_rows);
        own = {static_cast<int>(sequence.start), sequence.rows, sequence.targets};
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) take_rows(own, work.row0 + lane + 32 * half, work.rows[half]);
      const int end = __shfl_sync(~0u, own.start + own.rows, 31);
      if (end > work.row1) break;
      first = max(first + 32, find_sequence(end));
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      PackedRow& of = work.rows[half];
      const int within = work.row0 + lane + 32 * half - of.start;
      if (within < 0 || within >= of.rows) of = {work.row0, 0, 0};
    }
  }

  // The last of the lanes' sequences that begins at `row` or before it, if there is one.
  __device__ __forceinline__ static void take_rows(const PackedRow& own, int row, PackedRow& found) {
    int begun = 0;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      if (__shfl_sync(~0u, own.start, begun + step - 1) <= row) begun += step;
    }
    if (__shfl_sync(~0u, own.start, begun) <= row) ++begun;
    const PackedRow last = row_of_lane(own, max(begun - 1, 0));
    if (begun > 0) found = last;
  }

  // From what the rows of the first sequence see to what those of the last one do: between them are sequences that lie
  // within the tile.
  __device__ __forceinline__ void find_moving(PackedWork& work) const {
    work.first = row_of_lane(work.rows[0], 0);
    const int within = work.row1 - work.row0;
    const PackedRow low_half = row_of_lane(work.rows[0], within % 32);
    const PackedRow high_half = row_of_lane(work.rows[1], within % 32);
    work.last = within < 32 ? low_half : high_half;
    const int start = work.first.start, end = start + work.first.rows;
    work.mixed = work.row1 >= end;
    int low, high;
    View::range(work.row0 - start, min(work.row1, end - 1) - start, sequence_of_row(work.first), low, high);
    work.moving_begin = low < high ? start + low : end;
    work.moving_end = low < high ? start + high : end;
    if (work.mixed) {
      View::range(0, work.row1 - work.last.start, sequence_of_row(work.last), low, high);
      work.moving_end = work.last.start + (low < high ? high : 0);
    }
  }

  const Params& params_;
  const int batch_, row_end_;
  i64 first_ = 0;  // number of the role's first tile
  i64 round_ = 0;
};

// The moving tiles that rows of a packed tile have to do with. What lies within the first sequence or the last one, its
// rows alone do, and as its mask says.
template <class Config, class View = RowsView>
class PackedMovingTiles : public MovingTileWalk<Config, PackedMovingTiles<Config, View>> {
 public:
  __device__ __forceinline__ explicit PackedMovingTiles(const PackedWork& work) : work_(work) {
    first_row_ = work.moving_begin;
    classify();
  }

  __device__ __forceinline__ void classify() {
    const int first_end = work_.first.start + work_.first.rows;
    for (; first_row_ < work_.moving_end; first_row_ += 32 * Config::kBlockN) {
      const int row = first_row_ + static_cast<int>(threadIdx.x % 32) * Config::kBlockN, end = row + Config::kBlockN;
      bool full = false, visible = row < work_.moving_end;
      if (visible) {
        if (!work_.mixed || end <= first_end) {
          look_at(work_.first, work_.row0, min(work_.row1, first_end - 1), row, full, visible);
        } else if (row >= work_.last.start) {
          look_at(work_.last, work_.last.start, work_.row1, row, full, visible);
        }
      }
      flags_ = (visible ? MovingTileInfo::visible(0) : 0) | (full && !work_.mixed ? MovingTileInfo::full(0) : 0);
      visible_ = __ballot_sync(~0u, visible);
      if (visible_ != 0) return;
    }
  }

 private:
  using Walk = MovingTileWalk<Config, PackedMovingTiles>;
  using Walk::first_row_;
  using Walk::flags_;
  using Walk::visible_;

  // Looks at rows [row0, row1] of the tile, which are of `sequence`, and the moving tile from `row` on.
  static __device__ __forceinline__ void look_at(const PackedRow& sequence, int row0, int row1, int row, bool& full,
                                                 bool& visible) {
    const int start = sequence.start;
    View::tile(row0 - start, row1 - start, row - start, row + Config::kBlockN - 1 - start, sequence_of_row(sequence),
               full, visible);
  }

  const PackedWork& work_;
};

// Into shared memory, once the tile's buffer is free; before the first lane tells the tile's barrier. By a whole warp.
template <class Config>
__device__ __forceinline__ void write_packed_tile(PackedTile<Config>& tile, const PackedWork& work) {
  const int lane = threadIdx.x % 32;
  if constexpr (Config::kLanesArrive) {
    // For racecheck: by the lane that arrives.
#pragma unroll 1
    for (int row = 0; row < Config::kBlockM; ++row) {
      const PackedRow low_half = row_of_lane(work.rows[0], row % 32), high_half = row_of_lane(work.rows[1], row % 32);
      if (lane == 0) tile.rows[row] = row < 32 ? low_half : high_half;
    }
  } else {
    tile.rows[lane] = work.rows[0];
    tile.rows[lane + 32] = work.rows[1];
  }
  if (lane == 0) {
    tile.moving_end = work.moving_end;
    tile.mixed = work.mixed;
    tile.not_finite = 0;
  }
  __syncwarp();  // its arrival is that of all lanes' rows
}

}  // namespace sm90
