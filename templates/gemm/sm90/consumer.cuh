// A consumer warpgroup: multiplies stages, then stores the rows of the tile that are its own.
#pragma once
#include "common/ptx/ldst_shared.cuh"
#include "gemm/epilogue.cuh"
#include "gemm/sm90/cluster_k.cuh"
#include "gemm/sm90/shared.cuh"

namespace gemm {

template <class Config, class Params>
class Consumer {
  static constexpr int kBlocks = kRowBlocks<Config>;
  static constexpr int kGroups = Config::kBlockN / 8;  // of columns, in the layout of wgmma's accumulators
  static constexpr int kPieces = Config::kBlockN / kPieceColumns, kPieceSums = kPieceColumns / 2;
  static constexpr int kGroupsOfPiece = kPieceColumns / 8;

  // Elements that the epilogue reads for a thread's share of a piece: pairs of neighbours in two rows.
  struct PieceInputs {
    EpilogueVectors<Config, Epilogue> vectors[kGroupsOfPiece];
    EpilogueMatrices<Config, Epilogue> matrices[kGroupsOfPiece][2];
  };

 public:
  __device__ __forceinline__ Consumer(Shared<Config>& shared, const Params& params, int warpgroup)
      : shared_(shared), params_(params), warpgroup_(warpgroup) {}

  __device__ __forceinline__ void run(const TileScheduler<Config>& scheduler) {
    i64 number = scheduler.first();
    if constexpr (Config::kPingPong) {
      for (int i = 0; i < warpgroup_ && number < scheduler.count(); ++i, number += scheduler.step())
        skip(scheduler.tile(number));
    }
    while (number < scheduler.count()) {
      const WorkTile tile = scheduler.tile(number);
      compute(tile);
      number += scheduler.step();
      if constexpr (Config::kPingPong) {
        if (number < scheduler.count()) skip(scheduler.tile(number));
        number += scheduler.step();
      }
    }
    if constexpr (Config::kStoreBuffers > 0) bulk_wait_groups_read<0>();
  }

  // The producer says which tiles there are.
  __device__ __forceinline__ void run_sequences() {
#pragma unroll 1
    for (int owner = 0;; owner ^= 1) {  // which warpgroup has the tile, where they take them in ping-pong
      const WorkTile tile = take_tile(shared_, queue_);
      if (tile.sequence < 0) break;
      if (Config::kPingPong && owner != warpgroup_) {
        skip(tile);
      } else {
        compute(tile);
      }
    }
    if constexpr (Config::kStoreBuffers > 0) bulk_wait_groups_read<0>();
  }

 private:
  __device__ __forceinline__ void compute(const WorkTile& tile) {
    if constexpr (Config::kSplitK == 1) prefetch_inputs(tile);
    if constexpr (Config::kPingPong) named_barrier_sync(kPingPongBarrier + warpgroup_, 2 * kWarpgroup);
    int last_stage;
    if constexpr (kRowsOfSequences<Config>) {
      // Blocks below the sequence's last row are nobody's.
      const i64 left = tile.rows_end - first_row(tile);
      if (left <= 0) return pass(tile);
      last_stage = left <= kWarpgroupRows ? multiply<1>(tile) : multiply<kBlocks>(tile);
    } else {
      last_stage = multiply<kBlocks>(tile);
    }
    PieceInputs inputs;  // loaded while the last products are computed
    if constexpr (Config::kStoreBuffers > 0) load_inputs(tile, row_of_warp(tile), tile.column, inputs);
    finish(tile, last_stage);
    if constexpr (Config::kPingPong) named_barrier_arrive(kPingPongBarrier + (warpgroup_ ^ 1), 2 * kWarpgroup);
    if constexpr (Config::kClusterK > 1) {
      leave_partials();
      add_cluster_partials<Config>(shared_, params_, tile, [] { cluster_sync(); });
    } else if constexpr (Config::kSplitK > 1) {
      store_partials(tile);
    } else {
      store_pieces(tile, inputs);
    }
  }

  // Gives back the stages of a tile of which others alone have rows.
  __device__ __forceinline__ void pass(const WorkTile& tile) {
#pragma unroll 1
    for (i64 i = tile.first; i < tile.end; ++i) {
      mbarrier_wait(shared_address(&shared_.full[pipeline_.stage()]), pipeline_.phase());
      release_stage<Config>(shared_.empty[pipeline_.stage()]);
      pipeline_.advance();
    }
  }

  // The stages of a tile that is the other consumer's.
  __device__ __forceinline__ void skip(const WorkTile& tile) {
    for (i64 i = tile.first; i < tile.end; ++i) pipeline_.advance();
  }

  // All products of a tile's first blocks are asked for. The stage of the last ones, which finish() waits for.
  template <int kActive>
  __device__ __forceinline__ int multiply(const WorkTile& tile) {
    // 64 rows or columns of the result are as many bytes in both layouts.
    constexpr u32 kBlockBytes = kWarpgroupRows * kSwizzleBytes;
    const int first_block = Config::kPingPong ? 0 : warpgroup_ * kBlocks;
    sm90::PipelineState<Config::kStages> before = pipeline_;
    if (tile.first == tile.end) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
        for (float& sum : sums_[block]) sum = 0;
      }
    }
#pragma unroll 1
    for (i64 depth = tile.first; depth < tile.end; ++depth) {
      const int stage = pipeline_.stage();
      mbarrier_wait(shared_address(&shared_.full[stage]), pipeline_.phase());
      if constexpr (kSumsOfSequences<Config>) {
        const i64 left = tile.rows_end - tile.rows_begin - depth * kDepth;
        if (left < kDepth) clear_lines(stage, static_cast<int>(left));
      }
      const u32 b = wgmma_operand(shared_address(shared_.b[stage]), kBlockBytes);
#pragma unroll
      for (int block = 0; block < kActive; ++block) wgmma_keep_in_place(sums_[block]);
      wgmma_fence();
#pragma unroll
      for (int block = 0; block < kActive; ++block) {
        const u32 a = wgmma_operand(shared_address(shared_.a[stage]) + (first_block + block) * kBlockBytes);
        Product::issue(sums_[block], a, b, depth != tile.first);
      }
      wgmma_commit_group();
      if (depth != tile.first) {
        wgmma_wait_group<1>();
        release_stage<Config>(shared_.empty[before.stage()]);
        before = pipeline_;
      }
      pipeline_.advance();
    }
    return before.stage();
  }

  // Lines of a stage from `first` on are those of the next sequence's rows, which may be anything: of both factors they
  // become 0. By all consumers that share the stage.
  __device__ __forceinline__ void clear_lines(int stage, int first) {
    constexpr int kThreads = (Config::kPingPong ? 1 : Config::kConsumers) * kWarpgroup;
    constexpr int kBoxes = Config::kBlockM / kDepth + Stage<Config>::kColumnTiles, kPiece = 16;
    const u32 a = shared_address(shared_.a[stage]), b = shared_address(shared_.b[stage]);
    const int bytes = (kDepth - first) * kSwizzleBytes;
#pragma unroll 1
    for (int box = 0; box < kBoxes; ++box) {
      constexpr int kBoxBytes = kDepth * kSwizzleBytes, kABoxes = Config::kBlockM / kDepth;
      const u32 lines = (box < kABoxes ? a + box * kBoxBytes : b + (box - kABoxes) * kBoxBytes) + first * kSwizzleBytes;
      for (int i = threadIdx.x % kThreads * kPiece; i < bytes; i += kThreads * kPiece)
        st_shared_uint4(lines + i, make_uint4(0, 0, 0, 0));
    }
    fence_proxy_async();
    named_barrier_sync(kStageBarrier + (Config::kPingPong ? warpgroup_ : 0), kThreads);
  }

  __device__ __forceinline__ void finish(const WorkTile& tile, int last_stage) {
    wgmma_wait_group<0>();
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) wgmma_keep_in_place(sums_[block]);
    if (tile.first != tile.end) release_stage<Config>(shared_.empty[last_stage]);
  }

  // The first row of the tile that a consumer has, and that a warp has.
  __device__ __forceinline__ i64 first_row(const WorkTile& tile) const {
    const int first_block = Config::kPingPong ? 0 : warpgroup_ * kBlocks;
    return tile.row + first_block * kWarpgroupRows;
  }
  __device__ __forceinline__ i64 row_of_warp(const WorkTile& tile) const {
    return first_row(tile) + warp() % (kWarpgroup / 32) * kPieceRows;
  }
  // As a number that all lanes share, and the compiler knows that.
  static __device__ __forceinline__ int warp() { return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0); }

  // Where the stages were, which all consumers have read.
  __device__ __forceinline__ void leave_partials() const {
    named_barrier_sync(kStageBarrier, Config::kConsumers * kWarpgroup);
    const int row = warpgroup_ * kBlocks * kWarpgroupRows + warp() % (kWarpgroup / 32) * kPieceRows;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const int own = row + block * kWarpgroupRows + threadIdx.x % 32 / 4;
      sm90::store_partial<Config::kBlockN>(
          partials_address<Config>(shared_) + own * sm90::kPartialRowBytes<Config::kBlockN>, sums_[block]);
    }
  }

  __device__ __forceinline__ void store_partials(const WorkTile& tile) const {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const i64 row = row_of_warp(tile) + block * kWarpgroupRows;
      store_partial(tile, row + threadIdx.x % 32 / 4, sums_[block], 0);
      store_partial(tile, row + threadIdx.x % 32 / 4 + 8, sums_[block], 1);
    }
  }

  // The warp's rows of the tile, 16 of 64 columns a piece, as many pieces at a time as leave buffers to those before.
  // `inputs` are those of the first piece.
  __device__ __forceinline__ void store_pieces(const WorkTile& tile, PieceInputs& inputs) const {
    const i64 row = row_of_warp(tile);
    const int column = tile.column;
    constexpr int kAll = kBlocks * kPieces, kBuffers = Config::kStoreBuffers;
    constexpr int kTogether = kBuffers == kAll || kBuffers == 1 ? kBuffers : kBuffers / 2;
    constexpr int kBefore = kBuffers / kTogether - 1;  // groups that may still be on their way
    const u32 buffers = shared_address(shared_.pieces[warp()]);
    const auto row_of = [row](int piece) { return row + piece / kPieces * kWarpgroupRows; };
    const auto column_of = [column](int piece) { return column + piece % kPieces * kPieceColumns; };
#pragma unroll
    for (int first = 0; first < kAll; first += kTogether) {
      if (kRowsOfSequences<Config> && row_of(first) >= tile.rows_end) {  // and so are all that follow
        bulk_wait_groups_read<0>();  // the next tile begins with the first buffer, whichever was the last one here
        return;
      }
      bulk_wait_groups_read<kBefore>();
      __syncwarp();
#pragma unroll
      for (int i = first; i < first + kTogether; ++i) {
        u32 words[2 * kGroupsOfPiece];
        round_piece(inputs, column_of(i), sums_[i / kPieces] + i % kPieces * kPieceSums, words);
        if (i + 1 < kAll) load_inputs(tile, row_of(i + 1), column_of(i + 1), inputs);
        stage_fragment<kPieceColumns>(buffers + i % kBuffers * kPieceBytes, 0, words);
      }
      fence_proxy_async();
      __syncwarp();
#pragma unroll
      for (int i = first; i < first + kTogether; ++i) {
        const u32 piece = buffers + i % kBuffers * kPieceBytes;
        if constexpr (kSumsOfSequences<Config>) {
          store_bulk_tensor_3d_by_warp(piece, params_.out_map, column_of(i), static_cast<int>(row_of(i)),
                                       tile.sequence);
        } else if (!kRowsOfSequences<Config> || row_of(i) + kPieceRows <= tile.rows_end) {
          store_bulk_tensor_2d_by_warp(piece, params_.out_map, column_of(i), static_cast<int>(row_of(i)));
        } else if constexpr (kRowsOfSequences<Config>) {
          store_rows(tile, row_of(i), column_of(i), shared_.pieces[warp()][i % kBuffers]);
        }
      }
      bulk_commit_group();
    }
  }

  // Stores the rows of a piece that are the sequence's, where the copy engine would store those of the next one, too.
  __device__ __forceinline__ void store_rows(const WorkTile& tile, i64 row, int column,
                                             const unsigned char* piece) const {
    constexpr int kChunk = 16, kChunks = kSwizzleBytes / kChunk;
#pragma unroll 1
    for (int i = threadIdx.x % 32; i < kPieceRows * kChunks; i += 32) {
      const int line = i / kChunks, chunk = i % kChunks, stored = column + chunk * 8;
      const auto* const from = piece + line * kSwizzleBytes + (chunk ^ line % 8) * kChunk;
      if (row + line < tile.rows_end && stored < Config::kColumns) {
        *reinterpret_cast<uint4*>(params_.out + (row + line) * params_.out_stride + stored) =
            *reinterpret_cast<const uint4*>(from);
      }
    }
  }

  // For what lies outside of the result, which is not stored, its last row and columns are read.
  __device__ __forceinline__ void load_inputs(const WorkTile& tile, i64 row, int column, PieceInputs& inputs) const {
    constexpr bool kWhole = Config::kColumns % Config::kBlockN == 0;
    const int lane = threadIdx.x % 32;
    const i64 last_row = params_.rows - 1;
    const i64 rows[2] = {min(row + lane / 4, last_row), min(row + lane / 4 + 8, last_row)};
#pragma unroll
    for (int group = 0; group < kGroupsOfPiece; ++group) {
      const int own = column + lane % 4 * 2 + group * 8;
      const int inside = kWhole ? own : min(own, Config::kColumns - 2);
      inputs.vectors[group].load(params_, inside, tile.sequence);
#pragma unroll
      for (int half = 0; half < 2; ++half) inputs.matrices[group][half].load(params_, rows[half], inside);
    }
  }

  // Into L2, what the epilogue reads of the consumer's rows of a tile: a line of the cache for a thread at a time.
  __device__ __forceinline__ void prefetch_inputs(const WorkTile& tile) const {
    using Matrices = EpilogueMatrices<Config, Epilogue>;
    if constexpr (Matrices::kCount > 0) {
      constexpr int kRows = kBlocks * kWarpgroupRows, kLines = Config::kBlockN / Matrices::kLine;
      const i64 first_row = tile.row + (Config::kPingPong ? 0 : warpgroup_ * kRows);
#pragma unroll 1
      for (int i = threadIdx.x % kWarpgroup; i < kRows * kLines; i += kWarpgroup) {
        const i64 row = first_row + i / kLines;
        const int column = tile.column + i % kLines * Matrices::kLine;
        if (row < params_.rows && column < Config::kColumns) Matrices::prefetch(params_, row, column);
      }
    }
  }

  static __device__ __forceinline__ float element(const Params& params, float sum, int column,
                                                  const PieceInputs& inputs, int group, int half, int i) {
    return Epilogue::apply(params, sum, column + i, inputs.vectors[group][i].of, inputs.matrices[group][half][i].of);
  }

  // Columns that all have one formula are computed as the last one, which is a constant.
  __device__ __forceinline__ void round_piece(const PieceInputs& inputs, int column, const float* sums,
                                              u32 (&words)[2 * kGroupsOfPiece]) const {
    if (Epilogue::kAlikeFrom == 0 || column >= Epilogue::kAlikeFrom) {
      round_piece<true>(inputs, column, sums, words);
    } else {
      round_piece<false>(inputs, column, sums, words);
    }
  }
  template <bool kAlike>
  __device__ __forceinline__ void round_piece(const PieceInputs& inputs, int column, const float* sums,
                                              u32 (&words)[2 * kGroupsOfPiece]) const {
#pragma unroll
    for (int group = 0; group < kGroupsOfPiece; ++group) {
      const int own = kAlike ? Config::kColumns : column + threadIdx.x % 4 * 2 + group * 8;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* const pair = sums + group * 4 + half * 2;
        Epilogue::Data::put(words, (group * 2 + half) * 2, element(params_, pair[0], own, inputs, group, half, 0),
                            element(params_, pair[1], own, inputs, group, half, 1));
      }
    }
  }

  __device__ __forceinline__ void store_partial(const WorkTile& tile, i64 row, const float (&sums)[4 * kGroups],
                                                int half) const {
    if (row >= params_.rows) return;
    float* const partial = params_.partials + (tile.split * params_.rows + row) * Config::kColumns;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int column = tile.column + group * 8 + threadIdx.x % 4 * 2;
      if (column < Config::kColumns) {
        *reinterpret_cast<float2*>(partial + column) =
            make_float2(sums[group * 4 + half * 2], sums[group * 4 + half * 2 + 1]);
      }
    }
  }

  Shared<Config>& shared_;
  const Params& params_;
  const int warpgroup_;
  sm90::PipelineState<Config::kStages> pipeline_, queue_;
  float sums_[kBlocks][4 * kGroups];
};

}  // namespace gemm
