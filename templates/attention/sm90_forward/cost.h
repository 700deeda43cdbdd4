// Cost model of the sm90 skeleton: milliseconds of one forward launch.
#pragma once

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90 {

// Of a config that packs sequences where no tile has several: no tuning run is to time what is then a worse list.
inline constexpr double kNothingToPack = 4;

// What one warpgroup does in one KV tile, in cycles of a multiprocessor's units at their peak.
struct KvTileWork {
  double tensor = 0;      // both products
  double activation = 0;  // one transcendental an element
};
KvTileWork kv_tile_work(const HstuAttentionParams& params, int64_t block_n);

// `config` must be one that the skeleton does not reject for its tile.
double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size);

}  // namespace hstujit::sm90
