// The cost model of the sm90_backward_fused skeleton.
#pragma once

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

// Estimated milliseconds of one launch, on the scale of sm90_backward_twopass's.
double estimate_fused_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                         const ProblemSize& size);

}  // namespace hstujit::sm90::backward
