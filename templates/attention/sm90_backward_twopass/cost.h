// The cost model of the sm90_backward_twopass skeleton.
#pragma once

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

// Estimated milliseconds of one launch. `config` must be one that the skeleton does not reject for its tile.
double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size);

}  // namespace hstujit::sm90::backward
