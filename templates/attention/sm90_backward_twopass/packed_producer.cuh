// Attention backward on Hopper in two passes, with kPackSequences: the producer warp, which walks packed tiles of each
// role.
#pragma once
#include "attention/sm90_backward/producer.cuh"
#include "attention/sm90_backward_twopass/packed.cuh"
#include "attention/sm90_forward/packed_tiles.cuh"

namespace sm90::backward {

template <Role kRole>
struct ViewOf {
  using Type = ColumnsView;
};
template <>
struct ViewOf<Role::kRows> {
  using Type = RowsView;
};

template <class Spec, class Config, class Params>
class PackedProducer : public Producer<Spec, Config, Params> {
 public:
  __device__ __forceinline__ PackedProducer(PackedShared<Config>& shared, const Params& params)
      : Base(shared, params), packed_(shared.packed_tile) {}

  // The tiles of the kIndex-th role.
  template <int kIndex>
  __device__ __forceinline__ void run() {
    constexpr Role kRole = role_at<Config>(kIndex);
    using View = typename ViewOf<kRole>::Type;
    PackedTiles<Spec, Config, Params, View, kIndex> tiles(params_);
    PackedWork work;
    while (tiles.next(work)) {
      PackedMovingTiles<Config, View> moving_tiles(work);
      const int s = stationary_.stage();
      mbarrier_wait(shared_address(&shared_.stationary_empty[s]), stationary_.phase() ^ 1);
      write_packed_tile(packed_[s], work);
      // Rows of the tensors, as if they were one sequence.
      const Sequence rows = {0, tiles.row_end(), 0, 0, 0}, moving = {0, work.moving_end, 0, 0, 0};
      Base::template load_tile<kRole>({work.head, 0, 0}, rows, work.row0, !moving_tiles.empty());
      while (!moving_tiles.empty()) Base::template load_moving<kRole>(moving_tiles.pop(), 0, work.head, moving);
    }
  }

 private:
  using Base = Producer<Spec, Config, Params>;
  using Base::params_;
  using Base::shared_;
  using Base::stationary_;

  PackedTile<Config> (&packed_)[Config::kStationaryStages];
};

}  // namespace sm90::backward
