// Requirements of the sm80 skeletons of both directions on a device and a config.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit::sm80 {

// Why the device or a field of the config is nothing for these templates; sizes are looked at elsewhere.
std::vector<Rejection> general_rejections(const AttentionSpec& spec, const AttentionConfig& config,
                                          const DeviceSpec& device);

// Why `blocks` CTAs cannot be resident on one multiprocessor; empty when they can.
std::vector<Rejection> occupancy_limits(int64_t threads, int64_t shared_bytes, int64_t blocks,
                                        const DeviceSpec& device);

// Type in which data is multiplied: names kernels.
std::string_view product_name(const HstuAttentionParams& params);

}  // namespace hstujit::sm80
