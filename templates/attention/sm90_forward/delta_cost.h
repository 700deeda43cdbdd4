// Cost model of the sm90 skeleton for few rows of q over long histories: milliseconds of one forward launch.
#pragma once

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm90 {

// `config` must be one that the skeleton does not reject for its tile; the spec's query_rows are not kAll.
double delta_estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                         const ProblemSize& size);

}  // namespace hstujit::sm90
