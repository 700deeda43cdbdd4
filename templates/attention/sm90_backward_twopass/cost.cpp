#include "templates/attention/sm90_backward_twopass/cost.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm90/limits.h"
#include "templates/attention/sm90_backward_twopass/resources.h"

namespace hstujit::sm90::backward {

namespace {

constexpr double kLongestPacked = 1024;
constexpr double kNothingToPack = 4;
// Packed tiles are in the order of their rows: those of the longest sequence may be the last. In buckets of
// kLongestPacked and more they took 1.1 to 1.27 times as long as others.
constexpr double kLongBucket = 1.25;
// The estimates of the sm80 template are 1.3 to 2.6 times these; measured were 1.4 to 2.3.
constexpr double kUnitsPerMs = 2.7e6;

// A stage is held from the first product with it to the last, so that few of them are free for loads.
double late_loads(int64_t stages, const TwopassCosts& costs) {
  return stages <= 2 ? costs.two_stages : stages == 3 ? costs.three_stages : stages == 4 ? costs.four_stages : 1;
}

// The time that a moving tile of each role takes, of all consumer warpgroups.
double roles_moving_tile(const HstuAttentionParams& params, const AttentionConfig& config, const Resources& resources,
                         const TwopassCosts& costs) {
  const auto consumers = static_cast<double>(config.consumers);
  const auto resident = timed_resident_ctas(config);
  const auto columns = static_cast<double>(config.block_n);
  const double elements = 64 * columns;
  const double slow = 1 + costs.few_columns * (std::max(1.0, (64 + columns) / (2 * columns)) - 1);
  const double first_sum = elements * static_cast<double>(params.attn_dim) / 2048;
  const double second_sum = elements * static_cast<double>(params.hidden_dim) / 2048;
  const double scores = slow * first_sum, gradients = slow * second_sum;
  const double activation = costs.activation * score_work(params) * elements / 16;
  const auto moving_tile = [&](double tensor, bool overlap) {
    const double chain = costs.chain * (tensor + activation) * (overlap ? costs.overlapped : 1);
    const double slowest = std::max({chain / (consumers * resident), tensor, activation});
    return slowest * consumers * late_loads(config.stages, costs) + costs.moving_tile;
  };
  const double rows = moving_tile(scores + gradients + first_sum, resources.overlap_rows);
  if (!resources.split_columns) {
    return rows + moving_tile(scores + gradients + first_sum + second_sum, resources.overlap_columns);
  }
  const double keys = rows;
  return rows + keys + moving_tile(scores + second_sum, resources.overlap_columns);
}

}  // namespace

double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size, const TwopassCosts& costs) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(spec, config);
  const auto max_rows = static_cast<double>(std::min(size.max_seq_len, kLongestCounted));
  const auto resident = timed_resident_ctas(config);
  const bool persistent = config.schedule == "persistent";
  const double columns = static_cast<double>(params.attn_dim + params.hidden_dim);
  const double moving_tile = roles_moving_tile(params, config, resources, costs) +
                             (config.pack_sequences ? costs.packed_moving_tile * columns / 128 : 0);
  const auto roles = static_cast<double>(resources.roles);
  const bool groups = persistent && !config.pack_sequences && size.batch > resources.schedule_sequences;
  const double tile = costs.tile + (config.pack_sequences ? costs.packed_tile : 0) +
                      (params.num_targets ? costs.target_mask : 0) + (groups ? costs.in_group : 0) +
                      (!persistent                        ? costs.grid_tile
                       : resources.stationary_stages == 1 ? costs.one_tile
                                                          : 0);
  const double row_cost = costs.tile_rows * columns / 256;
  const auto all_tiles = std::ceil(max_rows / static_cast<double>(config.block_m));

  // Means over the assumed sequences. What columns stream is what rows do, counted from the other side.
  const std::vector<SequenceSize> sequences = assumed_sequences(params, size);
  auto lengths = static_cast<double>(sequences.size());
  double work = 0, longest = 0;
  const auto add_tiles = [&](const std::vector<int64_t>& moving_tiles) {
    for (const int64_t count : moving_tiles) {
      work += static_cast<double>(count) * moving_tile + roles * tile / resident;
      longest = std::max(longest, static_cast<double>(count) * moving_tile / roles);
    }
  };
  const bool packed = config.pack_sequences && size.mean_fill * max_rows < kLongestPacked;
  if (packed) {
    const PackedTileCounts counts = count_packed_kv_tiles(params, sequences, config.block_m, config.block_n);
    lengths = static_cast<double>(counts.sequences);
    add_tiles(counts.kv_tiles);
    work += roles * static_cast<double>(counts.kv_tiles.size()) * row_cost / resident;
  } else {
    for (const SequenceSize& sequence : sequences) {
      const std::vector<int64_t> moving_tiles = count_kv_tiles(params, sequence, config.block_m, config.block_n);
      add_tiles(moving_tiles);
      work += roles * static_cast<double>(ceil_div(sequence.rows, int64_t{64})) * row_cost / resident;
      const double tiles = static_cast<double>(moving_tiles.size());
      if (!persistent) work += roles * std::max(0.0, all_tiles - tiles) * costs.empty_cta / resident;
    }
  }

  const auto batch = static_cast<double>(size.batch);
  const double balanced = balanced_batch(size);
  const double heads = static_cast<double>(params.heads) * balanced / static_cast<double>(device.sm_count);
  const double time = heads * work / lengths + (persistent ? costs.list_tail : costs.grid_tail) * resident * longest;
  return (time * batch / balanced + costs.launch) / kUnitsPerMs *
         (config.pack_sequences && !packed       ? kNothingToPack
          : packed && max_rows >= kLongestPacked ? kLongBucket
                                                 : 1);
}

}  // namespace hstujit::sm90::backward
