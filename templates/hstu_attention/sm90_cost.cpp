#include "templates/hstu_attention/sm90_cost.h"

#include <algorithm>
#include <cmath>

#include "templates/hstu_attention/sm90_resources.h"
#include "templates/hstu_attention/tile_counts.h"

namespace hstujit::sm90 {

// Cycles of one multiprocessor, summed over the tiles it runs. The constants were searched at random over 1100 timings
// on an H200, 12 keys (docs/journal.md, entries 6 and 17): the choice is within 7 % of the best timed config of each.
double estimate_ms(const AttentionSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                   const ProblemSize& size) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(spec, config);
  const bool persistent = config.schedule == "persistent";
  const auto rows = static_cast<int64_t>(std::max(1.0, size.mean_fill * static_cast<double>(size.max_seq_len)));
  const TileCounts tiles = count_tiles(params, rows, config.block_m, config.block_n);
  const auto heads = static_cast<double>(params.heads * size.batch);
  const auto consumers = static_cast<double>(config.consumers);
  const auto blocks_per_sm = static_cast<double>(config.blocks_per_sm);

  // One column block of one consumer warpgroup: the slowest of its own chain of steps, shared by all warpgroups of the
  // multiprocessor, and of the units they share.
  const double elements = 64.0 * static_cast<double>(config.block_n);
  const double width = static_cast<double>(16 * ((params.attn_dim + 15) / 16) + params.hidden_dim);
  const double tensor = elements * width / 2048;
  const double activation = elements / 16;
  const double chain = 0.249 * tensor + 0.088 * activation + 157;
  const double l2 = static_cast<double>(config.block_n) * width * 2 / (132 * consumers);
  double block = std::max({chain / (consumers * blocks_per_sm), 0.205 * tensor, 1.55 * activation, l2});
  if (config.stages == 2) block *= 1.024;
  block += 25;

  double tile = 306 + 64.5 * static_cast<double>(params.hidden_dim);
  if (!persistent) tile += 1665;
  if (config.ping_pong) {
    block *= resources.first_tile_first ? 1.04 : 0.95;
    tile += 165;
  }
  double cycles = heads * (tiles.column_blocks * block * consumers + tiles.row_tiles * tile / blocks_per_sm);
  const double blocks_per_head = static_cast<double>(size.max_seq_len) / static_cast<double>(config.block_m);
  const double empty = persistent ? 0 : heads * std::max(0.0, blocks_per_head - tiles.row_tiles);
  cycles += empty * 1670 / blocks_per_sm;
  cycles /= static_cast<double>(device.sm_count);
  // A static list cannot balance tiles of which a few are much longer than the others.
  if (persistent && resources.first_tile_first) cycles *= 1.69;
  // Short sequences among long ones leave many blocks of a grid without rows; the assumed batch has none.
  if (!persistent) cycles *= 1.03;
  constexpr double kLaunch = 5000;
  constexpr double kClockKhz = 1.7e6;
  return (cycles + kLaunch) / kClockKhz;
}

}  // namespace hstujit::sm90
