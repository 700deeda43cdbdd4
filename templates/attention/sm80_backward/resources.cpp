#include "templates/attention/sm80_backward/resources.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/attention/sm80_forward/resources.h"

namespace hstujit::sm80 {

namespace {

constexpr int64_t kOtherRegisters = 90;    // addresses, loop state, the mask, operands on their way
constexpr int64_t kOtherPerSequence = 36;  // the same where many resident warps leave little on its way
constexpr int64_t kContextRegisters = 20;  // of them, where each sequence has its own number of contexts
constexpr int64_t kSoftmaxRegisters = 24;  // statistics of rows, where residents leave little
constexpr int64_t kDropoutRegisters = 16;  // what Philox computes with; twice as many where residents leave little
constexpr int64_t kVectorRegisters = 16;   // operands on their way without tensor cores: four elements each
constexpr int64_t kGatherRegisters = 12;   // elements on their way where data is too badly aligned for cp.async
constexpr int64_t kBiasRegisters = 8;      // addresses of the bias, where operands are not on their way one by one

}  // namespace

BackwardResources::BackwardResources(const HstuAttentionParams& params, const AttentionConfig& config) {
  const int64_t element = static_cast<int64_t>(size_of(params.dtype));
  const int64_t attn_bytes = round_up(params.attn_dim * element, kStepBytes);
  const int64_t hidden_bytes = round_up(params.hidden_dim * element, kStepBytes);
  threads = 32 * config.warps;
  warp_rows = config.block_m / config.warps;
  row_bytes = attn_bytes + hidden_bytes;
  shared_bytes = (config.block_m + config.stages * config.block_n) * row_bytes;
  register_cap = register_limit(threads, config.blocks_per_sm);

  const int64_t fragments = warp_rows / 16;
  const int64_t steps = row_bytes / kStepBytes;
  const int64_t passing = (is_ieee(params) ? kVectorRegisters : 0) + (params.alignment < 4 ? kGatherRegisters : 0) +
                          (params.has_bias() && !is_ieee(params) ? kBiasRegisters : 0);
  const int64_t softmax = params.has_softmax() ? kSoftmaxRegisters : 0;
  const int64_t dropout = params.attn_dropout ? kDropoutRegisters : 0;
  const int64_t other = config.schedule != "per_sequence" ? kOtherRegisters + dropout
                        : params.num_contexts ? kOtherPerSequence + kContextRegisters + softmax + 2 * dropout
                                              : kOtherPerSequence + softmax + 2 * dropout;
  const int64_t attn = round_up(params.attn_dim, kFragmentColumns);
  const int64_t hidden = round_up(params.hidden_dim, kFragmentColumns);
  const auto needed = [&](int64_t chunk, bool own, bool split) {
    const int64_t sums = split ? std::max(attn, hidden) : attn + hidden;
    const int64_t scores = chunk + (is_ieee(params) ? 0 : chunk / 4);  // S and dP, and one of them rounded
    return fragments * (sums / 2 + scores + 4 * (own ? steps : 1)) + other + passing;
  };
  const bool split = needed(16, false, false) > register_cap;
  roles = split ? 3 : 2;
  chunk_columns = 16;
  if (!is_ieee(params) && config.block_n % 32 == 0 && needed(32, false, split) <= register_cap) chunk_columns = 32;
  query_in_registers = !is_ieee(params) && needed(chunk_columns, true, split) <= register_cap;
  registers_needed = needed(chunk_columns, query_in_registers, split);
}

}  // namespace hstujit::sm80
