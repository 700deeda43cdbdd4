#include "templates/hstu_attention/sm90_delta_cost.h"

#include <algorithm>
#include <cmath>

#include "compiler/support/integers.h"
#include "templates/hstu_attention/sm90_resources.h"

namespace hstujit::sm90 {

namespace {

constexpr double kDeviceBytes = 19;      // that a multiprocessor gets per clock when all of them read
constexpr double kSmBytes = 40;          // when few do
constexpr double kLatency = 1400;        // clocks until a load arrives
constexpr double kClusterCycles = 1500;  // of adding up the parts
constexpr double kBlockCycles = 3000;    // from a block's start to its first product, and from its last one to its end
constexpr double kLaunchCycles = 5000;
constexpr double kClockKhz = 1.7e6;

// Columns that the last rows see, about.
int64_t visible_columns(const HstuAttentionParams& params, int64_t rows, int64_t delta_rows) {
  if (params.semi_local()) return std::min(rows, params.sla_k1 + params.sla_k2 + delta_rows);
  return params.max_attn_len > 0 ? std::min(rows, params.max_attn_len + delta_rows) : rows;
}

}  // namespace

double delta_estimate_ms(const AttentionSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                         const ProblemSize& size) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(spec, config);
  const auto rows = static_cast<int64_t>(std::max(1.0, size.mean_fill * static_cast<double>(size.max_seq_len)));
  const int64_t columns = visible_columns(params, rows, size.delta_rows);
  const int64_t tiles = ceil_div(size.delta_rows, config.block_m) * params.heads * size.batch;
  const int64_t resident = device.sm_count * config.blocks_per_sm;
  const int64_t room = std::min<int64_t>({16, resident / tiles, columns / (2 * config.block_n)});
  const int64_t cluster = resources.split ? std::max<int64_t>(room, 1) : 1;
  const int64_t blocks = tiles * cluster;
  const double rounds = std::ceil(static_cast<double>(blocks) / static_cast<double>(resident));
  const double column_blocks =
      std::ceil(static_cast<double>(ceil_div(columns, config.block_n)) / static_cast<double>(cluster));

  const auto stage_bytes = static_cast<double>(config.block_n * (resources.qk_tiles + resources.pv_tiles) * 128);
  const double busy_sms = static_cast<double>(std::min(blocks, device.sm_count));
  const double beside = static_cast<double>(std::min(blocks, resident)) / busy_sms;  // blocks on a multiprocessor
  const double rate = std::min(kSmBytes, kDeviceBytes * static_cast<double>(device.sm_count) / busy_sms);
  const double loads = stage_bytes * beside / rate;
  const double latency = kLatency / static_cast<double>(config.stages - 1);
  // As in sm90_cost.cpp: a warpgroup's chain of steps, and the units that all of them share.
  const double elements = 64.0 * static_cast<double>(config.block_n);
  const double width = static_cast<double>(16 * ((params.attn_dim + 15) / 16) + params.hidden_dim);
  const double tensor = elements * width / 2048, activation = elements / 16;
  const double chain = 0.249 * tensor + 0.088 * activation + 157;
  const double shared = std::max(0.205 * tensor, 1.55 * activation) * static_cast<double>(config.consumers) * beside;
  const double block = kBlockCycles + (cluster > 1 ? kClusterCycles : 0) +
                       column_blocks * (std::max({loads, latency, chain, shared}) + 25);
  return (rounds * block + kLaunchCycles) / kClockKhz;
}

}  // namespace hstujit::sm90
