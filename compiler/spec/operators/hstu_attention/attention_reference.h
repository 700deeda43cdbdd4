// The parts of the reference of the attention operators.
#pragma once

#include <vector>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/spec/reference.h"

namespace hstujit {

std::vector<HostValue> attention_inputs(const AttentionSpec& spec, Direction direction, const Lengths& lengths,
                                        uint64_t seed);
std::vector<std::vector<double>> attention_variances(const AttentionSpec& spec, Direction direction,
                                                     const std::vector<HostValue>& inputs,
                                                     const std::vector<bool>& sequences);
const OperatorReference& attention_reference();

}  // namespace hstujit
