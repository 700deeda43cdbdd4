// Host side of bias_gradient.cuh, for the backward kernels of Hopper: resources of a CTA, constants and products of the
// source, and the kernel in a launch plan.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/plan/launch_plan.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90::backward {

// Whether the instance has it. Intervals are of a head, and the kernel looks at the mask once for all heads.
bool has_bias_gradient(const HstuAttentionParams& params);

// Each is for has_bias_gradient() instances, and does nothing for others. The kernel comes before those of
// add_gradient_kernels(), which write over the statistics of softmax.
void add_bias_gradient(const AttentionSpec& spec, LaunchPlan& plan);
void add_bias_gradient_constants(const AttentionSpec& spec, Constants& constants);
std::string print_pair_products(const HstuAttentionParams& params);

}  // namespace hstujit::sm90::backward
