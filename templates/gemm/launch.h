// Common parts of the launches of gemm kernels: names, and what a device must have room for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/gemm_config.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit::gemm {

// Kind of product: bf16, fp16, tf32 or ieee.
std::string_view product_name(const GemmSpec& spec);

// The name of the config's kernel, of a skeleton for the architecture: "gemm_sm90_bf16_n512_k512_m128_n256_s4".
std::string kernel_name(const GemmSpec& spec, const GemmConfig& config, std::string_view architecture);

// Why the device has no room for the config's CTAs of so many bytes and threads.
void reject_size(const GemmConfig& config, int64_t shared_bytes, int64_t threads, const DeviceSpec& device,
                 std::vector<Rejection>& reasons);

}  // namespace hstujit::gemm
