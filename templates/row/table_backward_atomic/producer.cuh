// The producer warp: goes through the tiles of some sequences at a time, asks the copy engine for their rows, and finds
// which rows of the tables they find meanwhile.
#pragma once
#include "row/table_backward_atomic/shared.cuh"

// Shares out numbers below a count: all CTAs of the grid get as many of a quarter of them, then of a quarter of what is
// left, and so on, so that they end together.
class TileParts {
 public:
  __device__ __forceinline__ explicit TileParts(u32 count) : count_(count) { set_size(); }

  // The numbers of a part, which is none before the last one asked for: none if there are no more.
  __device__ __forceinline__ void find(u32 part, u32& first, u32& end) {
    while (size_ > kLeast && part - part_ >= gridDim.x) {
      first_ += size_ * gridDim.x;
      part_ += gridDim.x;
      set_size();
    }
    first = min(first_ + (part - part_) * size_, count_);
    end = min(first + size_, count_);
  }

 private:
  static constexpr u32 kLeast = 4;
  __device__ __forceinline__ void set_size() {
    size_ = first_ < count_ ? max((count_ - first_ + 4 * gridDim.x - 1) / (4 * gridDim.x), kLeast) : kLeast;
  }

  const u32 count_;
  u32 first_ = 0, part_ = 0, size_;  // of parts of this size, the first one and the first number of it
};

template <class Layout, class Config, class Operands, class Params>
class TileProducer {
 public:
  using Shared = TileShared<Layout, Operands, Config>;

  __device__ __forceinline__ TileProducer(const Params& params, Shared& shared) : params_(params), shared_(shared) {
    Operands::row_inputs(params, data_, strides_);
  }

  // Tiles are numbered by their place first, those of one place by sequence. There are about twice as many places as
  // the mean sequence has; of those of longer ones, places so far apart are one. CTAs take turns with parts of them.
  __device__ __forceinline__ void run() {
    const auto batch = static_cast<u32>(Operands::Sequences::count(params_));
    if (batch > 0) {
      const auto twice = static_cast<u32>(2 * params_.rows) / batch / Shared::kTileRows;
      const u32 places = min(twice, kMaxPlaces / batch) + 1;
      TileParts parts(places * batch);
      u32 first, end;
      u32 part = blockIdx.x;
#pragma unroll 1
      for (parts.find(part, first, end); first < end; parts.find(part, first, end)) {
        // The next one is asked for early, and waited for late.
        u32 next = 0;
        if (lane() == 0) next = atomicAdd(params_.part_count, 1u);
#pragma unroll 1
        while (first < end) {
          const u32 place = first / batch, sequence = first - place * batch;
          const u32 sequences = min(min(end - first, batch - sequence), 32u);
          go_through(static_cast<int>(place), static_cast<int>(places),
                     static_cast<int>(lane() < static_cast<int>(sequences) ? sequence + lane() : batch),
                     static_cast<int>(batch));
          first += sequences;
        }
        part = gridDim.x + __shfl_sync(~0u, next, 0);
      }
    }
    put_end();
  }

 private:
  static constexpr u32 kMaxPlaces = 1u << 30;  // times sequences
  // Lanes share out the rows of some tiles.
  static constexpr int kTileLanes = Shared::kTileRows < 32 ? Shared::kTileRows : 32;
  static constexpr int kTilesAtOnce = Config::kTilesAtOnce;
  static_assert(kTilesAtOnce * kTileLanes <= 32 && kTilesAtOnce <= Shared::kStages, "their keys come last");

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % 32); }

  // Each lane has a sequence; none from `batch` on.
  __device__ __forceinline__ void go_through(int first, int places, int sequence, int batch) {
    const CutSequence own = cut<Operands, Shared::kTileRows>(params_, sequence, batch);
    const int past = (own.first_tile - first) % places;  // of a number that may be negative
    int tile = own.first_tile + (past > 0 ? places - past : -past);
#pragma unroll 1
    for (;; tile += places) {
      u32 left = __ballot_sync(~0u, tile <= own.last_tile);
      if (left == 0) return;
#pragma unroll 1
      while (left != 0) put_tiles(own, tile, left);
    }
  }

  // The first of those sequences whose bits are left.
  __device__ __forceinline__ void put_tiles(const CutSequence& own, int tile, u32& left) {
    const int number = lane() / kTileLanes;  // of this lane's tile
    int sequence = 0, count = 0;
#pragma unroll
    for (int i = 0; i < kTilesAtOnce; ++i) {
      if (left == 0) break;
      if (i == number) sequence = __ffs(left) - 1;
      left &= left - 1;
      ++count;
    }
    const TileRows rows = rows_of_tile<Shared::kTileRows>(own, tile, sequence);
    const int first_stage = pipeline_.stage();
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const int stage = pipeline_.stage();
      mbarrier_wait(shared_address(&shared_.empty[stage]), pipeline_.phase() ^ 1);
      load(stage, rows, i * kTileLanes);
      pipeline_.advance();
    }
    if (number < count) find_keys(rows, (first_stage + number) % Shared::kStages);
    __syncwarp();
    for (int i = 0; i < count; ++i)
      sm90::arrive_as_warp<Config::kLanesArrive>(shared_.full[(first_stage + i) % Shared::kStages]);
  }

  // The tile of lane `owner`.
  __device__ __forceinline__ void load(int stage, const TileRows& tile, int owner) {
    const u32 full = shared_address(&shared_.full[stage]);
    const int rows = __shfl_sync(~0u, tile.rows, owner);
    const i64 row = __shfl_sync(~0u, tile.begin + tile.position, owner);
    if (lane() == owner) {
      shared_.info[stage] = {row, rows, tile.place, tile.slope, tile.key};
      mbarrier_arrive_expect_tx(full, rows * Shared::kRowBytes * Operands::kRowInputs);
    }
    __syncwarp();
#pragma unroll
    for (int input = 0; input < Operands::kRowInputs; ++input) {
      const auto* const from =
          static_cast<const unsigned char*>(data_[input]) + row * strides_[input] * Operands::Data::kBytes;
      const u32 to = shared_address(shared_.rows[stage][input]);
      if (strides_[input] * Operands::Data::kBytes == Shared::kRowBytes) {
        if (lane() == 0) cp_async_bulk(to, from, rows * Shared::kRowBytes, full);
      } else {
#pragma unroll 1
        for (int i = lane(); i < rows; i += 32)
          cp_async_bulk(to + i * Shared::kRowBytes, from + i * strides_[input] * Operands::Data::kBytes,
                        Shared::kRowBytes, full);
      }
    }
  }

  __device__ __forceinline__ void find_keys(const TileRows& tile, int stage) const {
#pragma unroll 1
    for (int i = lane() % kTileLanes; i < tile.rows; i += kTileLanes) {
      typename Operands::Sequences::Found found;
      Operands::Sequences::find(params_, tile.begin + tile.position + i, tile.sequence, tile.position + i, found);
#pragma unroll
      for (int table = 0; table < Shared::kTables; ++table)
        shared_.keys[stage][tile.place + i * tile.slope][table] =
            found.sums[table] < 0 ? kNoKey : static_cast<u32>(found.sums[table]);
    }
  }

  __device__ __forceinline__ void put_end() const {
    const int stage = pipeline_.stage();
    mbarrier_wait(shared_address(&shared_.empty[stage]), pipeline_.phase() ^ 1);
    if (lane() == 0) {
      shared_.info[stage].rows = 0;
      mbarrier_arrive(shared_address(&shared_.full[stage]));
    }
    __syncwarp();
    sm90::arrive_as_warp<Config::kLanesArrive>(shared_.full[stage]);
  }

  const Params& params_;
  Shared& shared_;
  const void* data_[Operands::kRowInputs];
  i64 strides_[Operands::kRowInputs];  // in elements
  sm90::PipelineState<Shared::kStages> pipeline_;
};
