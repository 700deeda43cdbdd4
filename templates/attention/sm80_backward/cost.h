// Cost model of the sm80_backward skeleton: milliseconds of one launch.
#pragma once

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "templates/attention/sm80/per_sequence_cost.h"

namespace hstujit::sm80 {

// Costs of a kernel that computes the gradient of the scores beside them.
PerSequenceCosts backward_per_sequence_costs();

// `config` must be one that the skeleton does not reject for its tile.
double backward_estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                            const ProblemSize& size, const PerSequenceCosts& costs = backward_per_sequence_costs());

}  // namespace hstujit::sm80
