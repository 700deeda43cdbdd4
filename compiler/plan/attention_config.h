// Parameters of the attention family's skeletons that the tuner varies.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/spec/family.h"
#include "compiler/spec/fields.h"

namespace hstujit {

struct AttentionConfig {
  static constexpr Family kFamily = Family::kAttention;
  static constexpr int64_t kMaxTile = 16384;        // rows or columns of a tile
  static constexpr int64_t kMaxStages = 16;         // no shared memory holds more
  static constexpr int64_t kMaxConsumers = 7;       // warpgroups of a CTA of 1024 threads beside the one that loads
  static constexpr int64_t kMaxWarps = 32;          // of such a CTA
  static constexpr int64_t kMaxBlocksPerSm = 32;    // resident on a multiprocessor
  static constexpr int64_t kMaxHeadCluster = 8;     // the largest cluster of every GPU
  static constexpr int64_t kSeparateSiteWarps = 2;  // of the producer's warpgroup, those that have nothing else to do
  static constexpr int64_t kMaxSiteWarps = 4 * kMaxConsumers;  // or the consumer warps themselves

  int64_t block_m = 0;    // rows of a tile
  int64_t block_n = 0;    // columns of a tile
  int64_t stages = 1;     // depth of the shared-memory pipeline
  int64_t consumers = 0;  // sm90: consumer warpgroups
  int64_t warps = 0;      // sm80: warps of a CTA
  // "grid": one CTA per tile; "persistent": resident CTAs, each with its share of a list sorted by cost; "semaphore":
  // resident CTAs, each of which takes the list's next tile, and deterministic dq accumulation in that order;
  // "per_sequence": a CTA has all tiles of a (sequence, head); resident ones of sm90, each of which takes the next, and
  // one for each, or for each of its roles, of sm80.
  std::string schedule = "grid";
  int64_t blocks_per_sm = 1;    // resident CTAs the kernel is compiled for
  bool ping_pong = false;       // sm90: ping-pong scheduling of the consumer warpgroups
  bool split_kv = false;        // sm90: the columns of a tile are split over a cluster of CTAs (see ClusterPlan)
  bool pack_sequences = false;  // sm90: a tile has rows of consecutive sequences
  int64_t head_cluster = 1;     // sm90 forward: CTAs of a cluster, each with another head, that share values of pairs
  int64_t site_warps = 0;       // sm90 backward: warps that add up gradients of tables, heads and scalars (0: kernels)
  std::string activation = "mufu";  // how the score's transcendental is computed: "mufu", "accurate"

  bool operator==(const AttentionConfig&) const = default;

  static constexpr auto fields() {
    using C = AttentionConfig;
    return std::make_tuple(
        field("block_m", &C::block_m, "rows of a tile", 0, kMaxTile),
        field("block_n", &C::block_n, "columns of a tile", 0, kMaxTile),
        field("stages", &C::stages, "pipeline depth", 1, kMaxStages),
        field("consumers", &C::consumers, "consumer warpgroups", 0, kMaxConsumers),
        field("warps", &C::warps, "warps of a CTA", 0, kMaxWarps),
        field("schedule", &C::schedule, "tile schedule").one_of("grid persistent semaphore per_sequence"),
        field("blocks_per_sm", &C::blocks_per_sm, "resident CTAs", 1, kMaxBlocksPerSm),
        field("ping_pong", &C::ping_pong, "ping-pong scheduling"),
        field("split_kv", &C::split_kv, "split-KV over a cluster of CTAs"),
        field("pack_sequences", &C::pack_sequences, "rows of consecutive sequences in a tile"),
        field("head_cluster", &C::head_cluster, "CTAs that share what all heads have in common", 1, kMaxHeadCluster),
        field("site_warps", &C::site_warps, "warps that sum gradients of tables, heads and scalars", 0, kMaxSiteWarps),
        field("activation", &C::activation, "score arithmetic").one_of("mufu accurate"));
  }
};

}  // namespace hstujit
