#include "templates/attention/sm90_forward/delta_cost.h"

#include <algorithm>
#include <cmath>

#include "compiler/spec/sequence_rows.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm90_forward/cost.h"
#include "templates/attention/sm90_forward/resources.h"

namespace hstujit::sm90 {

namespace {

// Clocks and bytes per clock of one multiprocessor, read off a timeline on an H200 (docs/journal.md, entry 22).
constexpr double kDeviceBytes = 19;    // that it gets when all of them read
constexpr double kSmBytes = 40;        // when few do
constexpr double kLatency = 1400;      // until a load arrives
constexpr double kStartCycles = 6000;  // from a CTA's start to its first product
constexpr double kEndCycles = 3000;    // from its last product to its end,
constexpr double kAddCycles = 4500;    // and to add up the partials of a cluster
constexpr double kChainCycles = 400;   // of a KV tile, besides products and activation one after the other
constexpr double kActivation = 0.7;    // what is not hidden of it
constexpr double kLaunchCycles = 5000;
constexpr double kClockKhz = 1.77e6;

double cycles(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
              const ProblemSize& size) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(spec, config);
  const auto rows = static_cast<int64_t>(std::max(1.0, size.mean_fill * static_cast<double>(size.max_seq_len)));
  const int64_t columns =
      count_columns_of_last_rows(params, assumed_sequence(params, static_cast<double>(rows)), size.rows_of(kQueryAxis));
  const int64_t tiles =
      std::max<int64_t>(ceil_div(size.rows_of(kQueryAxis), config.block_m) * params.heads * size.batch, 1);
  const int64_t resident = device.sm_count * config.blocks_per_sm;
  const int64_t room = std::min({kMaxSplits, resident / tiles, columns / (kMinSplitTiles * config.block_n)});
  const int64_t cluster = resources.split ? std::max<int64_t>(room, 1) : 1;
  const int64_t blocks = tiles * cluster;
  const double rounds = std::ceil(static_cast<double>(blocks) / static_cast<double>(resident));
  const double kv_tiles =
      std::ceil(static_cast<double>(ceil_div(columns, config.block_n)) / static_cast<double>(cluster));

  const auto stage_bytes = static_cast<double>(config.block_n * (resources.qk_tiles + resources.pv_tiles) * 128);
  const double busy_sms = static_cast<double>(std::min(blocks, device.sm_count));
  const double beside = static_cast<double>(std::min(blocks, resident)) / busy_sms;  // CTAs on a multiprocessor
  const double rate = std::min(kSmBytes, kDeviceBytes * static_cast<double>(device.sm_count) / busy_sms);
  const double loads = stage_bytes * beside / rate;
  const double latency = kLatency / static_cast<double>(std::max<int64_t>(config.stages - 1, 1));
  const auto [tensor, activation] = kv_tile_work(params, config.block_n);
  const double chain = kChainCycles + tensor + kActivation * activation;
  const double shared = std::max(tensor, activation) * static_cast<double>(config.consumers) * beside;
  // CTAs beside one another hide each other's begins and ends.
  const double ends = (kStartCycles + (cluster > 1 ? kAddCycles : kEndCycles)) / beside;
  return rounds * (ends + kv_tiles * std::max({loads, latency, chain, shared})) + kLaunchCycles;
}

}  // namespace

// One kernel serves whatever batch comes, so it counts how it does on many sequences and on one.
double delta_estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                         const ProblemSize& size) {
  ProblemSize one = size;
  one.batch = 1;
  return std::sqrt(cycles(spec, config, device, size) * cycles(spec, config, device, one)) / kClockKhz;
}

}  // namespace hstujit::sm90
