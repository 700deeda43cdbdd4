// Cost model of the sm80 skeleton: milliseconds of one forward launch.
#pragma once

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "templates/attention/sm80/per_sequence_cost.h"

namespace hstujit::sm80 {

// `config` must be one that the skeleton does not reject for its tile.
double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size, const PerSequenceCosts& costs = {});

}  // namespace hstujit::sm80
