// Which digest of compiler/generator/generator_digest.h stands in which key.
//
//   cubin, frozen choice    kernel_generator     of the config's skeleton: the kernel is another one when it differs
//   choice                  choice_generator     of all skeletons that could have been chosen: a choice says which of
//                                                their kernels runs, and an exported one holds as long as they are
//                                                those
//   noted estimate          choice_estimates     beside the above: what the cost model chose it may choose anew
//   compiler library        generator_digest     of everything: the library makes any of the kernels
//
// A tuning record has none: its key outlives builds, and each of its findings has the digest of its own source.
#pragma once

#include <string>

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

std::string kernel_generator(std::string_view op, const KernelConfig& config);
std::string choice_generator(const OpSpec& spec, Direction direction);
std::string choice_estimates(const OpSpec& spec, Direction direction);

}  // namespace hstujit
