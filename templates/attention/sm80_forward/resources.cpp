#include "templates/attention/sm80_forward/resources.h"

#include <algorithm>

#include "compiler/support/integers.h"

namespace hstujit::sm80 {

namespace {

constexpr int64_t kMaxRegisters = 255;     // per thread, of the architecture
constexpr int64_t kRegisterFile = 65536;   // per multiprocessor
constexpr int64_t kRegisterStep = 8;       // registers are given to threads in such steps
constexpr int64_t kOtherRegisters = 72;    // addresses, loop state, the mask, operands of k and v on their way
constexpr int64_t kOtherPerSequence = 36;  // the same where many resident warps leave little on its way
constexpr int64_t kSoftmaxRegisters = 24;  // sums and statistics of rows, where residents leave little
constexpr int64_t kDropoutRegisters = 12;  // what Philox computes with; twice as many where residents leave little
constexpr int64_t kVectorRegisters = 16;   // q and k on their way without tensor cores: four elements each
constexpr int64_t kGatherRegisters = 12;   // elements on their way where data is too badly aligned for cp.async
constexpr int64_t kBiasRegisters = 16;     // addresses of the bias, and some of it on its way

}  // namespace

int64_t register_limit(int64_t threads, int64_t blocks) {
  return std::min(kMaxRegisters, round_down(kRegisterFile / (threads * blocks), kRegisterStep));
}

bool is_ieee(const HstuAttentionParams& params) {
  return params.dtype == DataType::kFp32 && params.precision == MatmulPrecision::kIeee;
}

bool well_formed(const AttentionConfig& config) {
  if (config.block_m <= 0 || config.block_n <= 0 || config.warps <= 0 || config.stages <= 0 ||
      config.blocks_per_sm <= 0) {
    return false;
  }
  return config.block_m % config.warps == 0 &&
         (config.block_m / config.warps == 16 || config.block_m / config.warps == 32) && config.block_n % 16 == 0;
}

Resources::Resources(const HstuAttentionParams& params, const AttentionConfig& config) {
  const int64_t element = static_cast<int64_t>(size_of(params.dtype));
  threads = 32 * config.warps;
  warp_rows = config.block_m / config.warps;
  qk_row_bytes = round_up(params.attn_dim * element, kStepBytes);
  const int64_t output_columns = round_up(params.hidden_dim, kFragmentColumns);
  v_row_bytes = output_columns * element;
  shared_bytes = config.block_m * qk_row_bytes + config.stages * config.block_n * (qk_row_bytes + v_row_bytes);
  register_cap = register_limit(threads, config.blocks_per_sm);

  const int64_t fragments = warp_rows / 16;
  const int64_t steps = qk_row_bytes / kStepBytes;
  const int64_t softmax = params.has_softmax() ? kSoftmaxRegisters : 0;
  const bool per_sequence = config.schedule == "per_sequence";
  const int64_t dropout = params.attn_dropout ? (per_sequence ? 2 : 1) * kDropoutRegisters : 0;
  const int64_t other = (per_sequence ? kOtherPerSequence + softmax : kOtherRegisters) + dropout;
  const auto needed = [&](int64_t chunk, bool query) {
    const int64_t accumulators = output_columns / 2 + chunk / 2;
    const int64_t weights = is_ieee(params) ? 0 : chunk / 4;
    const int64_t passing = is_ieee(params) ? kVectorRegisters : 0;
    return fragments * (accumulators + weights + 4 * (query ? steps : 1)) + other + passing +
           (params.alignment < 4 ? kGatherRegisters : 0) + (params.has_bias() ? kBiasRegisters : 0);
  };
  // Wide chunks use a fragment of q more often; their accumulators must fit. Without tensor cores k is what is reused.
  chunk_columns = 16;
  for (const int64_t chunk : {64, 32}) {
    if (is_ieee(params) || config.block_n % chunk != 0 || needed(chunk, false) > register_cap) continue;
    chunk_columns = chunk;
    break;
  }
  query_in_registers = !is_ieee(params) && needed(chunk_columns, true) <= register_cap;
  registers_needed = needed(chunk_columns, query_in_registers);
}

}  // namespace hstujit::sm80
