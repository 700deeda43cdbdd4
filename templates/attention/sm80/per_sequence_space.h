// Candidates of the "per_sequence" schedule of the sm80 skeletons.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "compiler/plan/attention_config.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm80 {

// Small CTAs, of which many are resident: thousands of short sequences wait for memory most of the time. `warp_rows`:
// those of a tile that a warp may own.
std::vector<AttentionConfig> per_sequence_space(const HstuAttentionParams& params,
                                                std::initializer_list<int64_t> warp_rows);

}  // namespace hstujit::sm80
