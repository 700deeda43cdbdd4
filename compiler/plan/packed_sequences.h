// Kernels for batches of short sequences: those whose tiles have rows of several of them
// (AttentionConfig::pack_sequences), and where there are any; and small CTAs, of which each has a sequence.
#pragma once

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

bool packs_sequences(const KernelConfig& config);

// Whether it is one of both kinds.
bool is_for_short_sequences(const KernelConfig& config);

// Whether some kernel of the operator, or of a step of the program that it is, may be one on the device.
bool can_pack_sequences(const OpSpec& spec, Direction direction, const DeviceSpec& device);

}  // namespace hstujit
