// Attention backward on Hopper: which tiles a block works on.
//
// "grid": one block per (sequence, head, role, tile). Of one (sequence, head), both roles take turns, columns from the
// first and rows from the last tile on: those are the longest ones under a causal mask. Blocks past a sequence's end
// leave at once.
#pragma once
#include "hstu_attention/queries.cuh"
#include "hstu_attention/sm90_backward_shared.cuh"

namespace sm90::backward {

constexpr int kRoles = 2;

struct Tile {
  int head;
  int line_tile;
};

__device__ __forceinline__ Role grid_role() { return blockIdx.x % kRoles == 0 ? Role::kColumns : Role::kRows; }

// The one tile of this block, whose role is grid_role().
template <class Spec, class Config, class Params>
class GridSchedule {
 public:
  __device__ __forceinline__ explicit GridSchedule(const Params& params) : params_(params) {}

  // False when there is no further tile.
  __device__ __forceinline__ bool next(Tile& tile, Sequence& sequence) {
    if (taken_) return false;
    taken_ = true;
    const u32 tiles = ceil_div(params_.max_query_rows, Config::kBlockM);
    const u32 item = blockIdx.x / kRoles, pair = item / tiles;
    const int place = static_cast<int>(item - pair * tiles);
    tile.head = static_cast<int>(pair % Spec::kHeads);
    tile.line_tile = grid_role() == Role::kColumns ? place : static_cast<int>(tiles) - 1 - place;
    sequence = sequence_of<Spec, Config>(params_, static_cast<int>(pair / Spec::kHeads));
    return tile.line_tile * Config::kBlockM < sequence.rows;
  }

 private:
  const Params& params_;
  bool taken_ = false;
};

}  // namespace sm90::backward
