#include "templates/attention/sm80/limits.h"

#include <fmt/format.h>

#include "templates/attention/sm80_forward/resources.h"

namespace hstujit::sm80 {

namespace {

constexpr int kCapability = 80;

// CTAs that a multiprocessor has room for, whatever their size (CUDA C++ programming guide, compute capabilities).
int64_t most_ctas(int capability) { return capability == 86 ? 16 : capability == 89 ? 24 : 32; }

}  // namespace

std::string_view product_name(const HstuAttentionParams& params) {
  return params.dtype == DataType::kFp32 ? to_string(params.precision) : to_string(params.dtype);
}

std::vector<Rejection> general_rejections(const AttentionSpec& spec, const AttentionConfig& config,
                                          const DeviceSpec& device) {
  const HstuAttentionParams& params = spec.params();
  std::vector<Rejection> reasons;
  if (device.capability() < kCapability) {
    reasons.push_back(
        {"arch",
         fmt::format("needs sm_80 or later (cp.async, mma.sync of bf16 and tf32), the device is {}", device.arch)});
  }
  if (config.schedule != "grid" && config.schedule != "per_sequence") {
    reasons.push_back({"schedule", fmt::format("schedule {}; allowed: grid, per_sequence", config.schedule)});
  }
  if (config.schedule == "per_sequence" && params.dtype == DataType::kFp32) {
    reasons.push_back({"schedule", "schedule per_sequence with dtype fp32; allowed: bf16, fp16"});
  }
  if (config.schedule == "per_sequence" && spec.query_rows() != QueryRows::kAll) {
    reasons.push_back({"schedule", "schedule per_sequence where q has the last rows alone; allowed: grid"});
  }
  if (config.ping_pong) {
    reasons.push_back({"ping_pong", "ping-pong needs the consumer warpgroups of attention/sm90_forward"});
  }
  if (config.split_kv) {
    reasons.push_back({"split_kv", "split_kv true; allowed: false, this template's CTAs form no clusters"});
  }
  if (config.pack_sequences) {
    reasons.push_back({"pack_sequences", "pack_sequences true; allowed: false, this template has no packed tiles"});
  }
  if (config.head_cluster > 1) {
    reasons.push_back({"head_cluster", fmt::format("head_cluster {}; allowed: 1, this template's CTAs form no clusters",
                                                   config.head_cluster)});
  }
  if (config.site_warps > 0) {
    reasons.push_back({"site_warps", fmt::format("site_warps {}; allowed: 0, all warps of this template multiply",
                                                 config.site_warps)});
  }
  if (is_ieee(params) && config.activation != "accurate") {
    reasons.push_back(
        {"activation", fmt::format("activation {} loses the accuracy that precision ieee asks for; it must be accurate",
                                   config.activation)});
  }
  return reasons;
}

std::vector<Rejection> occupancy_limits(int64_t threads, int64_t shared_bytes, int64_t blocks,
                                        const DeviceSpec& device) {
  std::vector<Rejection> reasons;
  const int64_t capacity = device.multiprocessor_shared_memory();
  if (blocks * (shared_bytes + kReservedSharedMemory) > capacity) {
    reasons.push_back({"shared_memory",
                       fmt::format("{} CTA(s) of {} bytes of shared memory, and {} that the system reserves for each, "
                                   "exceed the {} bytes of a multiprocessor",
                                   blocks, shared_bytes, kReservedSharedMemory, capacity)});
  }
  if (blocks > most_ctas(device.capability())) {
    reasons.push_back({"threads", fmt::format("{} CTA(s) exceed the {} that a multiprocessor of {} has room for",
                                              blocks, most_ctas(device.capability()), device.arch)});
  }
  if (blocks * threads > device.max_threads) {
    reasons.push_back({"threads", fmt::format("{} CTA(s) of {} threads exceed the {} threads of a multiprocessor",
                                              blocks, threads, device.max_threads)});
  }
  return reasons;
}

}  // namespace hstujit::sm80
