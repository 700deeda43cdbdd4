// How long a config of the Hopper kernel should take.
#pragma once

#include "compiler/plan/gemm_config.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit::gemm_sm90 {

double estimate_ms(const GemmSpec& spec, const GemmConfig& config, const DeviceSpec& device, const ProblemSize& size);

}  // namespace hstujit::gemm_sm90
