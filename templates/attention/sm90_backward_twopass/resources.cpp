#include "templates/attention/sm90_backward_twopass/resources.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/attention/host/mask_shape.h"
#include "templates/attention/host/tile_info.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::sm90::backward {

Resources::Resources(const AttentionSpec& spec, const AttentionConfig& config) {
  const HstuAttentionParams& params = spec.params();
  // Of three CTAs with a warpgroup of producers, a consumer would have no more than of three with a warp.
  const bool producer_warpgroup = config.consumers > 1 || config.blocks_per_sm < 3;
  threads = 128 * config.consumers + (producer_warpgroup ? 128 : 32);
  qk_tiles = ceil_div(params.attn_dim, kTileColumns);
  pv_tiles = ceil_div(params.hidden_dim, kTileColumns);
  const bool persistent = config.schedule == "persistent", sorts = persistent && !config.pack_sequences;
  pair_tiles = sorts && tiles_pair_up(params);
  schedule_sequences = sorts ? (config.blocks_per_sm == 1 ? 2048 : 1024) : 1;

  const int64_t row_bytes = (qk_tiles + pv_tiles) * kSwizzleBytes;
  const auto total = [&](int64_t stationary) {
    // Barriers (8 bytes), TileInfo, its PipelineState (4), MovingTileInfo (8), TailInfo (8) and its phase (4),
    // then the schedule.
    const int64_t small = stationary * (24 + tile_info_bytes(spec) + 4) + config.stages * (16 + 8) + 16 + 8 + 4;
    const int64_t schedule = 12 + 4 * (schedule_sequences + 1) + 2 * schedule_sequences;
    int64_t bytes = small + schedule;
    // As in sm90::Resources.
    if (config.pack_sequences) bytes = round_up(bytes, int64_t{16}) + stationary * (16 * config.block_m + 16);
    return (stationary * config.block_m + config.stages * config.block_n) * row_bytes + round_up(bytes, int64_t{128});
  };
  // Sums, S and dP, addresses and loop state, and what the compiler keeps of so many elements at a time.
  const int64_t scores = config.block_n, words = config.block_n / 4;
  constexpr int64_t kIntervalRegisters = 16;
  const int64_t state = (producer_warpgroup ? 28 : 32) + std::max<int64_t>(0, config.block_n - 32) / 4 +
                        (params.has_intervals() ? kIntervalRegisters : 0);
  const bool long_mask = is_long_mask(params);
  // Addresses of the bias, and some of it on its way.
  const int64_t bias = params.has_bias() ? 12 : 0;
  // Statistics of rows, beside which dropout has no registers to draw in.
  const int64_t softmax = params.has_softmax() ? (params.attn_dropout ? 24 : 16) : 0;
  const int64_t rows = params.attn_dim / 2 + scores + state + bias + softmax;
  constexpr int64_t kMaxColumns = 256;  // of both sums
  split_columns = params.attn_dim + params.hidden_dim > kMaxColumns;
  if (split_columns) roles = 3;
  const int64_t values = params.hidden_dim / 2 + scores / 2 + state + bias + softmax;
  const int64_t columns = split_columns ? values : rows + params.hidden_dim / 2;
  registers_needed = std::max(rows, columns);

  // As in sm90::Resources, but a producer does with less where consumers need it. It needs more for intervals, to walk
  // a list under a long mask, and through a pipeline whose depth is no power of two.
  const int64_t even = even_registers(threads, config.blocks_per_sm);
  launch_registers = even;
  product_registers = std::max(params.attn_dim, params.hidden_dim) / 2 + 30;
  const bool odd_stages = (config.stages & (config.stages - 1)) != 0;
  const int64_t least = params.has_intervals() ? 56 : persistent && (long_mask || odd_stages) ? 48 : 40;
  consumer_registers = even;
  for (int64_t producer = 56; producer_warpgroup && producer >= least; producer -= 8) {
    producer_registers = producer;
    consumer_registers = consumer_share(even, config.consumers, producer);
    if (registers_needed <= consumer_registers) break;
  }
  // P and dS as packed pairs take the place of S and dP, unless those of the next moving tile are on their way.
  constexpr int64_t kOverlapState = 20;
  overlap_rows = rows + words + kOverlapState <= consumer_registers;
  overlap_columns = columns + (split_columns ? 1 : 2) * words + kOverlapState <= consumer_registers;

  const auto resident = [&](int64_t bytes) { return resident_bytes(bytes, config.blocks_per_sm); };
  // A second buffer lets the next tile's operands arrive early, and takes registers.
  const bool room = registers_needed + 12 <= consumer_registers && resident(total(2)) <= kSharedLimit;
  stationary_stages = persistent && room ? 2 : 1;
  shared_bytes = total(stationary_stages);
  shared_bytes_resident = resident(shared_bytes);
}

}  // namespace hstujit::sm90::backward
