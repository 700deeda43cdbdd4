#include "templates/attention/sm90_backward_fused/resources.h"

#include <algorithm>
#include <vector>

#include "compiler/spec/operators/hstu_attention/operands/sums.h"
#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/mask_shape.h"
#include "templates/attention/host/tile_info.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::sm90::backward {

namespace {

constexpr int64_t kExchangeBuffers = 2;  // as in shared.cuh

// Bytes that the warp takes that follows Q tiles: a barrier, FollowedTile and, under softmax, log2_sums and means.
int64_t follower_bytes(const AttentionSpec& spec, const AttentionConfig& config, bool bias_in_shared) {
  const bool softmax = spec.params().has_softmax();
  if (!softmax && !bias_in_shared) return 0;
  return config.stages * (8 + (bias_in_shared ? 24 : 12) + (softmax ? config.block_n * 8 : 0));
}

// Q tiles that begin a sequence and have a partial of dq from one KV tile only.
int64_t q_tiles_of_one_partial(const HstuAttentionParams& params, const AttentionConfig& config) {
  return params.causal && !first_rows_see_all(params) ? config.block_m / config.block_n : 0;
}

// Buffers of k and v, and sequences that a list can sort.
struct Buffers {
  int64_t stationary, sequences;
};

// Of what there is of shared memory, the first that fits is taken: two buffers before a long list, and that before
// sums. `alone`: on the multiprocessor.
std::vector<Buffers> buffers_of(bool per_sequence, bool alone, bool mask_first, bool softmax) {
  // Sums of "per_sequence" come before a longer list: one of 384 leaves room for two of 64 columns. One buffer was
  // slower there, whatever else had its room.
  if (!alone) return per_sequence ? std::vector<Buffers>{{2, 384}} : std::vector<Buffers>{{2, 1024}, {1, 1024}};
  // A second buffer is worth a shorter list where registers hold which one is in use.
  if (mask_first) return {{2, 2048}, {1, 2048}};
  // Statistics of rows take a KB of the list's room.
  if (softmax) return {{2, 2048}, {2, per_sequence ? 768 : 256}, {1, 2048}};
  return {{2, 2048}, {2, per_sequence ? 1024 : 448}, {1, 2048}};
}

// Bytes of shared memory that site warps need: ExchangedTile, SiteSums and barriers, or the sums of consumer warps.
int64_t site_bytes(const AttentionSpec& spec, int64_t site_warps) {
  if (site_warps == 0) return 0;
  const OperandSums sums(spec.operands());
  if (consumers_sum_sites(spec)) return site_warps * sums.others * 4;
  const bool number = spec.knows_sequence();
  const int64_t counts = spec.params().has_intervals() ? (number ? 24 : 16)
                         : spec.mask_reads()           ? 32
                         : number                      ? 12
                         : spec.takes_counts()         ? 8
                                                       : 4;
  const auto at_least_one = [](int64_t elements) { return std::max<int64_t>(elements, 1); };
  const auto operands = static_cast<int64_t>(sums.parts.size());
  const int64_t words = 2 * at_least_one(sums.tables) + at_least_one(sums.others) + 2 * operands;
  return kExchangeBuffers * (8 + round_up(24 + counts, int64_t{8})) + site_warps * 4 * words;
}

}  // namespace

bool consumers_sum_sites(const AttentionSpec& spec) {
  constexpr int64_t kMostReads = 3;
  const Result<Expression> score = parse_score(spec.params());
  return score.ok() && OperandSums(spec.operands()).tables == 0 &&
         std::ranges::count(score->nodes(), Operator::kRead, &Expression::Node::op) <= kMostReads;
}

FusedResources::FusedResources(const AttentionSpec& spec, const AttentionConfig& config) {
  const HstuAttentionParams& params = spec.params();
  const bool per_sequence = config.schedule == "per_sequence";
  threads = 128 * (config.consumers + 1);
  qk_tiles = ceil_div(params.attn_dim, kTileColumns);
  pv_tiles = ceil_div(params.hidden_dim, kTileColumns);
  pair_tiles = config.schedule == "persistent" && tiles_pair_up(params);
  last_tiles_first = first_rows_see_all(params);
  dq_columns = params.attn_dim / config.consumers;
  const bool row_factors = params.has_row_factors();

  const int64_t row_bytes = (qk_tiles + pv_tiles) * kSwizzleBytes;
  const auto total = [&](int64_t stationary, int64_t sequences) {
    // As in Resources, and the barriers of what is exchanged.
    const int64_t small = stationary * (24 + tile_info_bytes(spec) + 4) + config.stages * (16 + 8 + 4) + 16 + 8 + 4 +
                          8 + kExchangeBuffers * 8 + site_bytes(spec, config.site_warps) +
                          follower_bytes(spec, config, bias_in_shared);
    const int64_t counts = per_sequence ? 0 : sequences;
    const int64_t schedule = 12 + 4 * (counts + 1) + 2 * sequences;
    return (stationary * config.block_m + config.stages * config.block_n) * row_bytes +
           kExchangeBuffers * config.block_m * kSwizzleBytes +
           (bias_in_shared ? config.stages * config.block_n * config.block_m * 2 : 0) +
           round_up(small + schedule, int64_t{1024});
  };
  // Sums, S, which becomes the derivative, dP or the partial of dq, addresses and loop state.
  const int64_t scores = config.block_n / 2, state = row_factors ? 48 : 32;
  registers_needed = (params.attn_dim + params.hidden_dim) / 2 + scores + std::max(scores, dq_columns / 2) + state;

  producer_registers = 56;
  const auto share_out = [&] {
    consumer_registers =
        consumer_share(even_registers(threads, config.blocks_per_sm), config.consumers, producer_registers);
  };
  share_out();
  // Under softmax consumers need what the producer does without, but for one that walks semaphores; found by compiling.
  const bool semaphore = config.schedule == "semaphore";
  if (params.has_softmax() && !semaphore && registers_needed + 8 > consumer_registers) {
    producer_registers = 40;
    share_out();
  }
  if (params.num_softmax_heads == params.heads && semaphore && config.stages % 2 == 0) registers_needed += 8;

  const auto fits = [&](const Buffers& buffers) {
    return resident_bytes(total(buffers.stationary, buffers.sequences), config.blocks_per_sm) <= kSharedLimit;
  };
  const auto choose = [&](bool in_shared) {
    bias_in_shared = in_shared;
    mask_first = (params.has_bias() && !in_shared) || row_factors;
    const std::vector<Buffers> candidates =
        buffers_of(per_sequence, config.blocks_per_sm == 1, mask_first, params.has_softmax());
    auto buffers = std::find_if(candidates.begin(), candidates.end(), fits);
    const bool found = buffers != candidates.end();
    if (!found) --buffers;  // refused where it takes too much
    stationary_stages = buffers->stationary;
    schedule_sequences = buffers->sequences;
    return found;
  };
  if (!params.has_bias() || !choose(true)) choose(false);
  consumer_sites = config.site_warps > 0 && consumers_sum_sites(spec);
  store_warp = stationary_stages > 1 && (config.site_warps == 0 || consumer_sites);
  shared_bytes = total(stationary_stages, schedule_sequences);
  if (per_sequence) {
    const int64_t sum_bytes = config.block_n * params.attn_dim * static_cast<int64_t>(sizeof(float));
    const int64_t room = kSharedLimit / config.blocks_per_sm - kReservedSharedMemory - shared_bytes;
    first_smem_accum_tile = q_tiles_of_one_partial(params, config);
    smem_accum_tiles = std::max(room, int64_t{0}) / sum_bytes;
    shared_bytes += smem_accum_tiles * sum_bytes;
  }
  shared_bytes_resident = resident_bytes(shared_bytes, config.blocks_per_sm);
}

}  // namespace hstujit::sm90::backward
