// hstu_attention forward on Hopper, with kPackSequences: which packed tiles a CTA works on, and the producer warp that
// feeds its consumer.
//
// Tiles are numbered in the order of their rows, and of heads within the same rows; no sequence decides where one
// begins. Their number follows from the offsets' last element, so that a tile costs no look-up but that of its own
// sequences. CTAs take them in turn, in alternating direction, as those at the end of a long sequence see most columns.
#pragma once
#include "attention/sequence.cuh"
#include "attention/sm90_forward/packed_rows.cuh"
#include "attention/sm90_forward/producer.cuh"

namespace sm90 {

// What the lanes of the producer warp know of a tile.
struct PackedWork {
  int head;
  int row0, row1;     // its first row, and its last one that a sequence has
  PackedRow rows[2];  // of this lane's rows, `row0` + lane and 32 further on
  PackedRow first;    // of row0
  bool mixed;         // row1 is of another sequence
  int column_begin, column_end;  // that its rows see; column_end <= column_begin: none
};

// Walks this CTA's tiles; by one whole warp, all lanes in step.
template <class Spec, class Config, class Params>
class PackedTiles {
 public:
  __device__ __forceinline__ explicit PackedTiles(const Params& params)
      : params_(params),
        batch_(static_cast<int>(params.batch)),
        row_end_(static_cast<int>(
            min(max(static_cast<i64>(params.seq_offsets[params.batch]), 0ll), params.total_rows))) {}

  // Rows of the tensors that sequences have.
  __device__ __forceinline__ int row_end() const { return row_end_; }

  // False when there are no more tiles.
  __device__ __forceinline__ bool next(PackedWork& work) {
    const int across = round_ % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    const i64 number = static_cast<i64>(round_++) * gridDim.x + across;
    const i64 row0 = number / Spec::kHeads * Config::kBlockM;
    if (row0 >= row_end_) return false;
    work.head = static_cast<int>(number % Spec::kHeads);
    work.row0 = static_cast<int>(row0);
    work.row1 = min(work.row0 + Config::kBlockM, row_end_) - 1;
    find_rows(work);
    find_columns(work);
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
    const PackedRow last = row_of(own, max(begun - 1, 0));
    if (begun > 0) found = last;
  }

  __device__ __forceinline__ static PackedRow row_of(const PackedRow& own, int lane) {
    return {__shfl_sync(~0u, own.start, lane), __shfl_sync(~0u, own.rows, lane), __shfl_sync(~0u, own.targets, lane)};
  }

  // From what the rows of the first sequence see to what those of the last one do: between them are sequences that lie
  // within the tile.
  __device__ __forceinline__ void find_columns(PackedWork& work) const {
    work.first = row_of(work.rows[0], 0);
    const int within = work.row1 - work.row0;
    const PackedRow low_half = row_of(work.rows[0], within % 32), high_half = row_of(work.rows[1], within % 32);
    const PackedRow last = within < 32 ? low_half : high_half;
    const int start = work.first.start, end = start + work.first.rows;
    work.mixed = work.row1 >= end;
    int low, high;
    mask_columns(work.row0 - start, min(work.row1, end - 1) - start, work.first.rows, work.first.targets, low, high);
    work.column_begin = low < high ? start + low : end;
    work.column_end = low < high ? start + high : end;
    if (work.mixed) {
      mask_columns(0, work.row1 - last.start, last.rows, last.targets, low, high);
      work.column_end = low < high ? last.start + high : last.start;
    }
  }

  const Params& params_;
  const int batch_, row_end_;
  int round_ = 0;
};

// The KV tiles that rows of a packed tile may see. One that ends before the second sequence is seen by rows of the
// first one only, and by those as its mask says.
template <class Config>
class PackedKvTiles : public MovingTileWalk<Config, PackedKvTiles<Config>> {
 public:
  __device__ __forceinline__ explicit PackedKvTiles(const PackedWork& work) : work_(work) {
    first_row_ = work.column_begin;
    classify();
  }

  __device__ __forceinline__ void classify() {
    const PackedRow& first = work_.first;
    const int start = first.start, end = start + first.rows;
    for (; first_row_ < work_.column_end; first_row_ += 32 * Config::kBlockN) {
      const int column = first_row_ + static_cast<int>(threadIdx.x % 32) * Config::kBlockN;
      bool full = false, visible = column < work_.column_end;
      if (visible && (!work_.mixed || column + Config::kBlockN <= end)) {
        mask_tile(work_.row0 - start, min(work_.row1, end - 1) - start, column - start,
                  column + Config::kBlockN - 1 - start, first.rows, first.targets, full, visible);
      }
      flags_ = (visible ? MovingTileInfo::visible(0) : 0) | (full && !work_.mixed ? MovingTileInfo::full(0) : 0);
      visible_ = __ballot_sync(~0u, visible);
      if (visible_ != 0) return;
    }
  }

 private:
  using Walk = MovingTileWalk<Config, PackedKvTiles>;
  using Walk::first_row_;
  using Walk::flags_;
  using Walk::visible_;

  const PackedWork& work_;
};

template <class Spec, class Config, class Params>
class PackedProducer {
 public:
  __device__ __forceinline__ PackedProducer(PackedShared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), leader_(threadIdx.x % 32 == 0) {}

  __device__ __forceinline__ void run() {
    PackedTiles<Spec, Config, Params> tiles(params_);
    PackedWork work;
    while (tiles.next(work)) {
      PackedKvTiles<Config> kv_tiles(work);
      load_query(work, tiles.row_end(), !kv_tiles.empty());
      while (!kv_tiles.empty()) {
        const MovingTileInfo kv_tile = kv_tiles.pop();
        const int rows = work.column_end - kv_tile.row0;
        load_keys(kv_tile, work.head, rows);
        load_values(kv_tile, work.head, rows);
        pipeline_.advance();
      }
    }
    finish();
  }

 private:
  __device__ __forceinline__ void load_query(const PackedWork& work, int row_end, bool has_work) {
    const int s = query_.stage(), lane = threadIdx.x % 32;
    const u32 full = shared_address(&shared_.q_full[s]);
    PackedTile<Config>& tile = shared_.packed_tile[s];
    mbarrier_wait(shared_address(&shared_.q_empty[s]), query_.phase() ^ 1);
    tile.rows[lane] = work.rows[0];
    tile.rows[lane + 32] = work.rows[1];
    if (leader_) {
      shared_.tile[s] = {0, work.row0, work.column_end, 0, work.head, has_work, 0};
      tile.row_end = row_end;
      tile.mixed = work.mixed;
      tile.not_finite = 0;
    }
    __syncwarp();  // the leader's arrival is that of all lanes' rows
    if (leader_ && has_work) {
      load_operand<Config::kQkTiles, Config::kBlockM>(shared_address(shared_.q[s]), params_.q_map, params_.q_tail_map,
                                                      full, work.head, work.row0, row_end - work.row0);
    } else {
      arrive_lane(full);
    }
    __syncwarp();
    query_.advance();
  }

  // `rows`: how many from the KV tile's first on some row of the tile may see.
  __device__ __forceinline__ void load_keys(const MovingTileInfo& kv_tile, int head, int rows) {
    const int s = pipeline_.stage();
    mbarrier_wait(shared_address(&shared_.k_empty[s]), pipeline_.phase() ^ 1);
    if (leader_) {
      shared_.moving_tile[s] = kv_tile;
      load_operand<Config::kQkTiles, Config::kBlockN>(shared_address(shared_.k[s]), params_.k_map, params_.k_tail_map,
                                                      shared_address(&shared_.k_full[s]), head, kv_tile.row0, rows);
    }
    __syncwarp();
  }

  __device__ __forceinline__ void load_values(const MovingTileInfo& kv_tile, int head, int rows) {
    const int s = pipeline_.stage();
    mbarrier_wait(shared_address(&shared_.v_empty[s]), pipeline_.phase() ^ 1);
    if (leader_) {
      load_operand<Config::kPvTiles, Config::kBlockN>(shared_address(shared_.v[s]), params_.v_map, params_.v_tail_map,
                                                      shared_address(&shared_.v_full[s]), head, kv_tile.row0, rows);
    }
    __syncwarp();
  }

  // Tells the consumer that there is nothing more.
  __device__ __forceinline__ void finish() {
    mbarrier_wait(shared_address(&shared_.q_empty[query_.stage()]), query_.phase() ^ 1);
    if (leader_) shared_.tile[query_.stage()].done = 1;
    __syncwarp();
    arrive_lane(shared_address(&shared_.q_full[query_.stage()]));
  }

  // Arrives where a q buffer is full, as many lanes as its barrier counts.
  __device__ __forceinline__ void arrive_lane(u32 full) const {
    if (leader_ || Config::kLanesArrive) mbarrier_arrive(full);
  }

  PackedShared<Config>& shared_;
  const Params& params_;
  const bool leader_;
  PipelineState<Config::kQueryStages> query_;
  PipelineState<Config::kStages> pipeline_;
};

}  // namespace sm90
