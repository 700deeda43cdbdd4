// A program that launches one generated kernel on random input and times it.
#pragma once

#include <string>

#include "compiler/plan/launch_plan.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"

namespace hstujit {

// nvcc's options for the device's own architecture. Spelled out: -arch=sm_90a of CUDA 13 compiles for sm_90, too, where
// there is no wgmma.
std::string nvcc_target(const DeviceSpec& device);

// The text of launcher_file(), which includes source_file(). It links against nothing but the CUDA runtime, from which
// it also gets the driver's tensor map encoder. The first lines say how it is built for `device`; what the signature
// leaves open is one struct of constants below them.
std::string print_launcher(const OpSpec& spec, Direction direction, const LaunchPlan& plan, const DeviceSpec& device);

}  // namespace hstujit
