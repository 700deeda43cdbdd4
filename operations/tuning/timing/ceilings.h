// The best that the device can do, measured beside every benchmark: a time says little without it.
#pragma once

#include <optional>
#include <string>

#include "compiler/spec/device_spec.h"
#include "operations/tuning/timing/timer.h"

namespace hstujit {

struct Ceilings {
  double copy_bytes_per_s = 0;    // device to device, bytes read and bytes written
  double matmul_flops_per_s = 0;  // bf16, 8192 x 8192 x 8192; 0 when unknown
  std::string matmul_source;      // "measured with libcublas.so.13", or where the figure is from
};

// Measures in the current context. The matrix product needs cuBLAS; without it a recorded figure of this GPU stands in
// and says so.
Result<Ceilings> measure_ceilings(const CudaDriverPtr& driver, const DeviceSpec& device, DeviceTimer& timer);

}  // namespace hstujit
