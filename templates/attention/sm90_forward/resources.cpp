#include "templates/attention/sm90_forward/resources.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/attention/host/mask_shape.h"
#include "templates/attention/host/tile_info.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::sm90 {

namespace {

constexpr int64_t kValueStages = 2;  // as in shared_values.cuh

}  // namespace

Resources::Resources(const AttentionSpec& spec, const AttentionConfig& config) {
  const HstuAttentionParams& params = spec.params();
  const bool persistent = config.schedule == "persistent";
  const bool producer_warpgroup = config.consumers > 1, shares_values = config.head_cluster > 1;
  threads = 128 * config.consumers + (producer_warpgroup ? 128 : 32) + (shares_values ? 128 : 0);
  qk_tiles = ceil_div(params.attn_dim, kTileColumns);
  pv_tiles = ceil_div(params.hidden_dim, kTileColumns);
  const bool sorts = persistent && !config.pack_sequences;
  pair_tiles = sorts && tiles_pair_up(params);
  const LongTile longest = long_tile(params);
  long_tile_first = longest != LongTile::kNone;
  long_tile_is_last = longest == LongTile::kLast;
  if (long_tile_first) other_tile_columns = columns_of_rows(params, config.block_m);
  schedule_sequences = sorts ? (config.blocks_per_sm == 1 ? 2048 : 1024) : 1;

  const int64_t query = qk_tiles * config.block_m * kSwizzleBytes;
  const int64_t stage = (qk_tiles + pv_tiles) * config.block_n * kSwizzleBytes;
  // The sums that a CTA leaves to its cluster take the place of k and v.
  const int64_t partial = config.block_m * (params.hidden_dim + 8) * 4;
  partial_fits = partial <= config.stages * stage;
  split = (spec.query_rows() != QueryRows::kAll || config.split_kv) && config.consumers == 1 && partial_fits &&
          !params.has_softmax();
  const auto total = [&](int64_t queries) {
    // Barriers (8 bytes), TileInfo, MovingTileInfo (8), TailInfo (8), then the schedule.
    const int64_t small = queries * (16 + tile_info_bytes(spec)) + config.stages * (32 + 8) + 16 + 8;
    const int64_t schedule = 12 + 4 * (schedule_sequences + 1) + 2 * schedule_sequences;
    int64_t bytes = small + schedule;
    // PackedTile: PackedRow (16) for each row, and 12 bytes, padded to 16.
    if (config.pack_sequences) bytes = round_up(bytes, int64_t{16}) + queries * (16 * config.block_m + 16);
    // ValueRing of each consumer warpgroup: values, and barriers of 8 bytes.
    if (shares_values)
      bytes = round_up(bytes, int64_t{16}) + config.consumers * kValueStages * (config.block_n * 64 * 4 + 16);
    return queries * query + config.stages * stage + round_up(bytes, int64_t{128});
  };
  const auto resident = [&](int64_t bytes) { return resident_bytes(bytes, config.blocks_per_sm); };
  query_stages = persistent && resident(total(2)) <= kSharedLimit ? 2 : 1;
  shared_bytes = total(query_stages);
  shared_bytes_resident = resident(shared_bytes);

  consumer_registers = even_registers(threads, config.blocks_per_sm);
  if (producer_warpgroup) {
    producer_registers = shares_values ? 72 : 56;  // found by compiling: values of pairs take more than loads do
    consumer_registers =
        consumer_share(consumer_registers, config.consumers, producer_registers, shares_values ? 2 : 1);
  }
  // S and O accumulators, P as packed pairs, addresses and loop state. What is added was found by compiling: it keeps
  // out configs that were seen to spill. Four CTAs, of heads of 32, get by with less.
  const int64_t state = producer_warpgroup || config.blocks_per_sm > 3 ? 32 : 36;
  registers_needed = config.block_n / 2 + params.hidden_dim / 2 + config.block_n / 4 + state;
  if (config.pack_sequences && params.num_targets) registers_needed += 8;
  if (params.has_softmax()) registers_needed += params.has_softmax_score() ? 20 : 8;
  if (params.attn_dropout) registers_needed += config.block_n % 64 == 0 ? 4 : 12;
  if (params.has_bias()) {
    // Addresses, and the bias of 16 columns; that of a KV tile, loaded while its product runs, where there is room.
    // Found by compiling, as the others; the widest outputs leave none.
    registers_needed += params.hidden_dim > 192 ? 36 : 12;
    bias_ahead = registers_needed + config.block_n / 4 + 8 <= consumer_registers;
  }
}

}  // namespace hstujit::sm90
