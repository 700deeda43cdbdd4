#include "templates/hstu_attention/sm90_backward_fused_resources.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/hstu_attention/mask_shape.h"
#include "templates/hstu_attention/sm90_machine.h"

namespace hstujit::sm90::backward {

namespace {

constexpr int64_t kExchangeBuffers = 2;  // as in sm90_backward_fused_shared.cuh

}  // namespace

FusedResources::FusedResources(const AttentionSpec& spec, const KernelConfig& config) {
  const HstuAttentionParams& params = spec.params();
  threads = 128 * (config.consumers + 1);
  qk_tiles = ceil_div(params.attn_dim, kTileColumns);
  pv_tiles = ceil_div(params.hidden_dim, kTileColumns);
  pair_tiles = config.schedule == "persistent" && tiles_pair_up(params);
  tiles_by_place = first_rows_see_all(params);
  part_columns = params.attn_dim / config.consumers;
  const bool row_factors = params.attn_scale == "rows";
  mask_first = is_long_mask(params) || params.has_rab() || row_factors;

  const int64_t line = (qk_tiles + pv_tiles) * kSwizzleBytes;
  const auto total = [&](int64_t kept, int64_t sequences) {
    // As in Resources, and the barriers of what is exchanged.
    const int64_t small = kept * (24 + 32 + 4) + config.stages * (16 + 8 + 4) + 16 + 8 + 4 + 8 + kExchangeBuffers * 8;
    const int64_t schedule = 12 + 4 * (sequences + 1) + 2 * sequences;
    return (kept * config.block_m + config.stages * config.block_n) * line +
           kExchangeBuffers * config.block_m * kSwizzleBytes + round_up(small + schedule, int64_t{1024});
  };
  // Sums, S, which becomes the derivative, dP or the part of dq, addresses and loop state.
  const int64_t scores = config.block_n / 2, state = row_factors ? 48 : 32;
  registers_needed = (params.attn_dim + params.hidden_dim) / 2 + scores + std::max(scores, part_columns / 2) + state;

  producer_registers = 56;
  consumer_registers =
      consumer_share(even_registers(threads, config.blocks_per_sm), config.consumers, producer_registers);

  const auto resident = [&](int64_t bytes) { return resident_bytes(bytes, config.blocks_per_sm); };
  const auto two_fit = [&](int64_t sequences) { return resident(total(2, sequences)) <= kSharedLimit; };
  schedule_sequences = config.blocks_per_sm == 1 ? 2048 : 1024;
  kept_stages = two_fit(schedule_sequences) ? 2 : 1;
  // A second buffer of k and v is worth a shorter list of sorted sequences, where registers hold which one is in use.
  constexpr int64_t kShortList = 448;
  if (kept_stages == 1 && config.blocks_per_sm == 1 && !mask_first && two_fit(kShortList)) {
    schedule_sequences = kShortList;
    kept_stages = 2;
  }
  shared_bytes = total(kept_stages, schedule_sequences);
  shared_bytes_resident = resident(shared_bytes);
}

}  // namespace hstujit::sm90::backward
