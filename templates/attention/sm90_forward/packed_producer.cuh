// hstu_attention forward on Hopper, with kPackSequences: the producer warp that feeds the one consumer.
#pragma once
#include "attention/sm90_forward/packed_consumer.cuh"
#include "attention/sm90_forward/packed_tiles.cuh"
#include "attention/sm90_forward/producer.cuh"

namespace sm90 {

template <class Spec, class Config, class Params>
class PackedProducer {
 public:
  __device__ __forceinline__ PackedProducer(PackedShared<Config>& shared, const Params& params)
      : shared_(shared), params_(params), leader_(threadIdx.x % 32 == 0) {}

  __device__ __forceinline__ void run() {
    PackedTiles<Spec, Config, Params> tiles(params_);
    PackedWork work;
    while (tiles.next(work)) {
      PackedMovingTiles<Config> kv_tiles(work);
      // The tile's q may wait for all products of an earlier tile.
      load_pending_values();
      load_query(work, tiles.row_end(), !kv_tiles.empty());
      while (!kv_tiles.empty()) {
        const MovingTileInfo kv_tile = kv_tiles.pop();
        const int rows = work.moving_end - kv_tile.row0;
        load_keys(kv_tile, work.head, rows);
        load_pending_values();
        pipeline_.advance();
        pending_ = {work.head, kv_tile.row0, rows};
      }
    }
    load_pending_values();
    finish();
  }

 private:
  __device__ __forceinline__ void load_query(const PackedWork& work, int row_end, bool has_work) {
    const int s = query_.stage();
    const u32 full = shared_address(&shared_.q_full[s]);
    mbarrier_wait(shared_address(&shared_.q_empty[s]), query_.phase() ^ 1);
    write_packed_tile(shared_.packed_tile[s], work);
    if (leader_) {
      shared_.tile[s] = {0, work.row0, row_end, 0, work.head, has_work, 0};
      if (has_work) {
        load_operand<Config::kQkTiles, Config::kBlockM>(shared_address(shared_.q[s]), params_.q_map, params_.q_tail_map,
                                                        full, work.head, work.row0, row_end - work.row0);
      } else {
        mbarrier_arrive(full);
      }
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

  // Loads the values of the KV tile before pipeline_.
  __device__ __forceinline__ void load_pending_values() {
    const auto [head, row, rows] = pending_;
    if (rows == 0) return;
    pending_.rows = 0;
    const PipelineState<Config::kStages> pipeline = pipeline_.previous();
    const int s = pipeline.stage();
    mbarrier_wait(shared_address(&shared_.v_empty[s]), pipeline.phase() ^ 1);
    if (leader_) {
      load_operand<Config::kPvTiles, Config::kBlockN>(shared_address(shared_.v[s]), params_.v_map, params_.v_tail_map,
                                                      shared_address(&shared_.v_full[s]), head, row, rows);
    }
    __syncwarp();
  }

  // Tells the consumer that there is nothing more.
  __device__ __forceinline__ void finish() {
    mbarrier_wait(shared_address(&shared_.q_empty[query_.stage()]), query_.phase() ^ 1);
    if (leader_) {
      shared_.tile[query_.stage()].done = 1;
      mbarrier_arrive(shared_address(&shared_.q_full[query_.stage()]));
    }
  }

  PackedShared<Config>& shared_;
  const Params& params_;
  const bool leader_;
  PipelineState<Config::kQueryStages> query_;
  PipelineState<Config::kStages> pipeline_;
  ValueTile pending_ = {};
};

}  // namespace sm90
