// Kernels whose tiles have rows of several sequences (AttentionConfig::pack_sequences): which they are, and where there
// are any.
#pragma once

#include "compiler/plan/kernel_config.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

bool packs_sequences(const KernelConfig& config);

// Whether some kernel of the operator, or of a step of the program that it is, may be one on the device.
bool can_pack_sequences(const OpSpec& spec, Direction direction, const DeviceSpec& device);

}  // namespace hstujit
