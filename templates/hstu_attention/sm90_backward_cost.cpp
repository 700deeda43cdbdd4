#include "templates/hstu_attention/sm90_backward_cost.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/hstu_attention/sm90_backward_resources.h"
#include "templates/hstu_attention/tile_counts.h"

namespace hstujit::sm90::backward {

namespace {

// In cycles of a multiprocessor. Not fitted to measurements: what is known of the forward kernel, for seven products.
constexpr double kActivation = 1.6;   // of two transcendentals an element and what goes with them, over their peak
constexpr double kChain = 1.5;        // a warpgroup's products and activation, one after the other, over both peaks
constexpr double kOverlapped = 0.85;  // of that, where the next products run during an activation
constexpr double kBlock = 300;        // barriers and the loop
constexpr double kTwoStages = 1.1;    // loads that are late for want of a third stage
constexpr double kTile = 3500;        // of a list: what no load of the next tile hides
constexpr double kOneTile = 2500;     // of a list whose tile has no second buffer
constexpr double kGridTile = 6000;    // of a grid: start, barriers and first loads
constexpr double kEmptyBlock = 1500;  // past the end of its sequence
constexpr double kTail = 0.5;         // of the longest tile: multiprocessors that wait for the last blocks
constexpr double kLaunch = 5000;
constexpr double kClockKhz = 1.77e6;

}  // namespace

double estimate_ms(const AttentionSpec& spec, const KernelConfig& config, const DeviceSpec& device,
                   const ProblemSize& size) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(spec, config);
  const auto max_rows = static_cast<double>(std::min(size.max_seq_len, kLongestCounted));
  const auto consumers = static_cast<double>(config.consumers);
  const auto resident = static_cast<double>(config.blocks_per_sm);

  // One warpgroup's block in each role: two to four products of 64 x block_n elements. Operands that are read from
  // shared memory by few columns at a time keep the tensor cores waiting.
  const auto columns = static_cast<double>(config.block_n);
  const double elements = 64 * columns, slow = std::max(1.0, (64 + columns) / (2 * columns));
  const double first_sum = elements * static_cast<double>(params.attn_dim) / 2048;
  const double second_sum = elements * static_cast<double>(params.hidden_dim) / 2048;
  const double scores = slow * first_sum, gradients = slow * second_sum;
  const double activation = kActivation * elements / 16;
  const auto block = [&](double tensor, bool overlap) {
    const double chain = kChain * (tensor + activation) * (overlap ? kOverlapped : 1);
    const double late = config.stages == 2 ? kTwoStages : 1;
    return std::max({chain / (consumers * resident), tensor, activation}) * consumers * late + kBlock;
  };
  double all_roles = block(scores + gradients + first_sum, resources.overlap_rows);
  if (resources.split_columns) {
    all_roles *= 2;  // rows and keys
    all_roles += block(scores + second_sum, resources.overlap_columns);
  } else {
    all_roles += block(scores + gradients + first_sum + second_sum, resources.overlap_columns);
  }
  const double roles = resources.split_columns ? 3 : 2;

  // What columns stream is what rows do, counted from the other side.
  const SequenceSize sequence = assumed_sequence(params, size.mean_fill * max_rows);
  const std::vector<int64_t> blocks = count_column_blocks(params, sequence, config.block_m, config.block_n);
  const bool persistent = config.schedule == "persistent";
  const double tile = kTile + (!persistent ? kGridTile : resources.kept_stages == 1 ? kOneTile : 0);
  double total = 0;
  for (const int64_t count : blocks) total += static_cast<double>(count) * all_roles + roles * tile / resident;
  if (!persistent) {
    const auto all_tiles = static_cast<double>(ceil_div(static_cast<int64_t>(max_rows), config.block_m));
    total += roles * std::max(0.0, all_tiles - static_cast<double>(blocks.size())) * kEmptyBlock / resident;
  }
  const double longest = static_cast<double>(*std::max_element(blocks.begin(), blocks.end())) * all_roles / roles;

  const double pairs = static_cast<double>(params.heads) * static_cast<double>(size.batch);
  const double cycles = pairs * total / static_cast<double>(device.sm_count) + kTail * resident * longest;
  return (cycles + kLaunch) / kClockKhz;
}

}  // namespace hstujit::sm90::backward
