// Candidates of the "per_sequence" schedule of the sm80 skeletons.
#pragma once

#include <vector>

#include "compiler/plan/attention_config.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm80 {

// Small CTAs, of which many are resident: thousands of short sequences wait for memory most of the time.
std::vector<AttentionConfig> per_sequence_space(const HstuAttentionParams& params);

}  // namespace hstujit::sm80
