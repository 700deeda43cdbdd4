// Parameters of the gemm family's skeletons that the tuner varies.
#pragma once

#include <cstdint>

#include "compiler/spec/family.h"
#include "compiler/spec/fields.h"

namespace hstujit {

struct GemmConfig {
  static constexpr Family kFamily = Family::kGemm;

  int64_t block_m = 0;      // rows of a tile of the result
  int64_t block_n = 0;      // its columns
  int64_t stages = 2;       // of the pipeline, each 64 deep
  int64_t consumers = 2;    // warpgroups that multiply
  bool ping_pong = false;   // consumers have tiles of their own, and take turns; else they share each tile's rows
  int64_t split_k = 1;      // CTAs that share the sum of a tile, whose parts a second kernel adds up
  int64_t raster_rows = 8;  // tiles of rows that are gone through together, so that L2 keeps their columns
  int64_t cluster = 1;      // CTAs with tiles of rows one below the other, which load their columns for one another
  int64_t cluster_k = 1;    // CTAs of a cluster that share the sum of a tile, and add up its parts themselves

  bool operator==(const GemmConfig&) const = default;

  static constexpr auto fields() {
    using C = GemmConfig;
    return std::make_tuple(
        field("block_m", &C::block_m, "rows of a tile", 0, 512),
        field("block_n", &C::block_n, "columns of a tile", 0, 512),
        field("stages", &C::stages, "stages of the pipeline", 1, 16),
        field("consumers", &C::consumers, "warpgroups that multiply", 1, 4),
        field("ping_pong", &C::ping_pong, "consumers take turns"),
        field("split_k", &C::split_k, "CTAs that share a sum", 1, 256),
        field("raster_rows", &C::raster_rows, "tiles of rows that go together", 1, 64).keeping_registers(),
        field("cluster", &C::cluster, "CTAs that share columns by multicast", 1, 8),
        field("cluster_k", &C::cluster_k, "CTAs of a cluster that share a sum", 1, 8));
  }
};

}  // namespace hstujit
