#include "templates/attention/sm90_backward/bias_gradient.h"

#include <algorithm>

#include "compiler/support/integers.h"
#include "templates/attention/host/launch_slots.h"
#include "templates/common/sm90/machine.h"
#include "templates/common/sm90/wgmma_printer.h"

namespace hstujit::sm90::backward {

namespace {

// As in bias_gradient.cuh.
constexpr int64_t kWarpgroups = 2, kRows = 64 * kWarpgroups, kColumns = 128, kColumnTiles = 4, kBiasStages = 2;
constexpr int64_t kThreads = 128 * (kWarpgroups + 1);
constexpr int64_t kStages = 5;  // chunks on their way; head dimensions have 4 at most
constexpr int64_t kSharedBytes =
    kStages * ((kRows + kColumns) * kSwizzleBytes + 2 * 8) + kBiasStages * (kRows * kColumns * 2 + 2 * 8);
constexpr int64_t kProducerRegisters = 56;

}  // namespace

// No registers are left for dropout beside softmax, or for its score.
bool has_bias_gradient(const HstuAttentionParams& params) {
  const bool scores_or_drops = params.has_softmax() && (params.attn_dropout || params.has_softmax_score());
  return params.returns_dbias() && !params.has_intervals() && !scores_or_drops;
}

void add_bias_gradient(const AttentionSpec& spec, LaunchPlan& plan) {
  const HstuAttentionParams& params = spec.params();
  if (!has_bias_gradient(params)) return;
  const Signature signature = spec.signature(Direction::kBackward);
  for (const char* operand : {"q", "dout"})
    plan.slots.push_back(attention_map_slot(signature, std::string(operand) + "_tile_map", operand, kRows));
  for (const char* operand : {"k", "v"})
    plan.slots.push_back(attention_map_slot(signature, std::string(operand) + "_tile_map", operand, kColumns));
  const size_t size = find_argument(signature, "max_seq_len");
  FollowingKernel kernel;
  kernel.kernel_name = plan.kernel_name + "_bias_gradient";
  kernel.function = "wgmma_bias_gradient";
  kernel.threads = static_cast<int>(kThreads);
  kernel.shared_memory = kSharedBytes;
  kernel.resident_blocks = 1;
  kernel.grid = {batch_factor(signature), constant_factor(params.bias_heads()), scalar_factor(size, kRows),
                 scalar_factor(size, kColumns * kColumnTiles)};
  plan.following.push_back(std::move(kernel));
}

void add_bias_gradient_constants(const AttentionSpec& spec, Constants& constants) {
  if (!has_bias_gradient(spec.params())) return;
  constants.emplace_back("pair_stages", kStages);
  constants.emplace_back("pair_shared_bytes", kSharedBytes);
  constants.emplace_back("pair_producer_registers", kProducerRegisters);
  constants.emplace_back("pair_consumer_registers",
                         consumer_share(even_registers(kThreads, 1), kWarpgroups, kProducerRegisters));
}

std::string print_pair_products(const HstuAttentionParams& params) {
  if (!has_bias_gradient(params)) return {};
  const auto print = [&](const char* name, int64_t width) {
    return print_wgmma(name, {.dtype = params.dtype,
                              .n = kColumns,
                              .k = std::min(width, kTileColumns),
                              .a = OperandA::kShared,
                              .a_rows = kRows,
                              .transpose_b = false,
                              .b_rows = kColumns,
                              .accumulate = Accumulate::kAlways}) +
           "\n";
  };
  return print("PairScoreProduct", params.attn_dim) + print("PairGradientProduct", params.hidden_dim);
}

}  // namespace hstujit::sm90::backward
