// The operands of an instance of attention as CUDA: structs of Spec, which say where a kernel's parameters have them.
#pragma once

#include <string>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

// Members of Spec. `Bias` and `Factors` are there in every instance; with kHeads 0, and kPresent false, it has none.
// `Tensor`, and in backward `Gradient` and `Before` where there are such, are functions of Params: the address, and a
// stride for every axis but the last.
std::string print_operands(const AttentionSpec& spec, Direction direction);

}  // namespace hstujit
