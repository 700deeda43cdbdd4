#include "templates/gemm/launch.h"

#include <fmt/format.h>

namespace hstujit::gemm {

std::string_view product_name(const GemmSpec& spec) {
  return spec.dtype() == DataType::kFp32 ? to_string(spec.precision()) : to_string(spec.dtype());
}

std::string kernel_name(const GemmSpec& spec, const GemmConfig& config, std::string_view architecture) {
  const GemmInterface& gemm = spec.interface();
  std::string name = fmt::format("{}_{}_{}_n{}_k{}_m{}_n{}_s{}", spec.op(), architecture, product_name(spec), gemm.n,
                                 gemm.sums_rows() ? gemm.m : gemm.k, config.block_m, config.block_n, config.stages);
  if (config.ping_pong) name += "_ping_pong";
  if (config.split_k > 1) name += fmt::format("_split{}", config.split_k);
  if (config.cluster_k > 1) name += fmt::format("_cluster_k{}", config.cluster_k);
  return name;
}

void reject_size(const GemmConfig& config, int64_t shared_bytes, int64_t threads, const DeviceSpec& device,
                 std::vector<Rejection>& reasons) {
  if (shared_bytes > device.shared_memory) {
    reasons.push_back({"shared_memory", fmt::format("{} stages take {} bytes of shared memory; a CTA has {}",
                                                    config.stages, shared_bytes, device.shared_memory)});
  }
  if (threads > device.max_threads)
    reasons.push_back({"threads", fmt::format("{} threads; a multiprocessor has {}", threads, device.max_threads)});
}

}  // namespace hstujit::gemm
