#include "templates/attention/sm90_forward/small_batch_cost.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "compiler/support/integers.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm90_forward/cost.h"
#include "templates/attention/sm90_forward/resources.h"

namespace hstujit::sm90 {

namespace {

// Clocks, and bytes per clock of one multiprocessor. Those of the steps of a CTA are of the timeline of
// docs/journal.md, entry 22, whose loop this is; the CTAs of a small batch read k and v of few heads, which come from
// L2.
constexpr double kSmBytes = 40;
constexpr double kLatency = 1400;        // until a load arrives
constexpr double kStartCycles = 6000;    // from a CTA's start to its first product
constexpr double kEndCycles = 3000;      // from its last product to its end,
constexpr double kAddCycles = 4500;      // and to add up the partials of a cluster
constexpr double kNextCycles = 2500;     // between two tiles of a list: their ends overlap
constexpr double kChainCycles = 400;     // of a KV tile, besides products and activation one after the other
constexpr double kActivation = 0.7;      // what is not hidden of it
constexpr double kPingPongCycles = 100;  // of a KV tile, with ping-pong
constexpr double kLaunchCycles = 5000;
constexpr double kClockKhz = 1.77e6;

// As the launcher chooses it.
int64_t cluster_of(const AttentionConfig& config, int64_t tiles, int64_t resident, int64_t rows) {
  const int64_t room = std::min({kMaxSplits, resident / tiles, rows / (kMinSplitTiles * config.block_n)});
  return std::max<int64_t>(room, 1);
}

// A KV tile of all consumers of a CTA, with `beside` CTAs on a multiprocessor.
double kv_tile_cycles(const AttentionSpec& spec, const AttentionConfig& config, const Resources& resources,
                      double beside) {
  const auto consumers = static_cast<double>(config.consumers);
  const auto stage_bytes = static_cast<double>(config.block_n * (resources.qk_tiles + resources.pv_tiles) * 128);
  const auto [tensor, activation] = kv_tile_work(spec.params(), config.block_n);
  const double latency = kLatency / static_cast<double>(std::max<int64_t>(config.stages - 1, 1));
  const double chain = kChainCycles + tensor + kActivation * activation + (config.ping_pong ? kPingPongCycles : 0);
  const double shared = std::max(tensor, activation) * consumers * beside;
  return std::max({stage_bytes * beside / kSmBytes, latency, chain, shared});
}

}  // namespace

double small_batch_estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                               const ProblemSize& size) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(spec, config);
  const SequenceSize sequence = assumed_sequence(params, size.mean_fill * static_cast<double>(size.max_seq_len));
  const std::vector<int64_t> kv_tiles = count_kv_tiles(params, sequence, config.block_m, config.block_n);
  const int64_t copies = params.heads * size.batch;
  const int64_t resident = device.sm_count * config.blocks_per_sm;
  const int64_t tiles = ceil_div(size.max_seq_len, config.block_m) * copies;
  const int64_t cluster = resources.split ? cluster_of(config, tiles, resident, size.max_seq_len) : 1;
  const int64_t blocks = std::min(tiles * cluster, resident);
  const double beside = static_cast<double>(blocks) / static_cast<double>(std::min(blocks, device.sm_count));
  const double kv_tile = kv_tile_cycles(spec, config, resources, beside);

  // The longest first, each to the CTA or the cluster that is free first.
  std::vector<double> times;
  for (const int64_t count : kv_tiles) {
    const double share = static_cast<double>(ceil_div(count, cluster));
    times.insert(times.end(), static_cast<size_t>(copies), share * kv_tile);
  }
  std::sort(times.begin(), times.end(), std::greater<>());
  const double ends = kStartCycles + (cluster > 1 ? kAddCycles : kEndCycles);
  const double next = config.schedule == "persistent" ? kNextCycles : ends;
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (int64_t i = 0; i < resident / cluster; ++i) free_at.push(0);
  double last = 0;
  for (const double time : times) {
    const double begin = free_at.top(), end = begin + (begin > 0 ? next : ends) + time;
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  }
  return (last + kLaunchCycles) / kClockKhz * (config.pack_sequences ? kNothingToPack : 1);
}

}  // namespace hstujit::sm90
