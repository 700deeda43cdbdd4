#include "templates/attention/sm80_forward/cost.h"

#include <algorithm>

#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm80/cost_rates.h"
#include "templates/attention/sm80_forward/resources.h"

namespace hstujit::sm80 {

namespace {

constexpr double kSharedBytes = 128;         // read per multiprocessor and clock
constexpr double kHidden = 2.5;              // warps per scheduler that hide one another's latencies
constexpr double kImperfection = 1.15;       // over the busiest unit, when everything else is hidden
constexpr double kTileCycles = 3000;         // a row tile's first loads and last stores, and
constexpr double kTileCyclesPerColumn = 40;  // more for each column of the output
constexpr double kEmptyCycles = 500;         // a CTA past its sequence's end
constexpr double kExposedCycles = 900;       // a KV tile's loads, without a stage to run ahead
constexpr double kBarrierCycles = 120;       // a KV tile's barrier and loop
// On Hopper every copy, operand load and product takes issue slots that TMA and wgmma leave to the score.
constexpr double kHopperIssue = 1.8;

}  // namespace

Rates rates_of(int capability) {
  if (capability >= 90) return {1230, 128, 36, kHopperIssue};  // mma.sync reaches about 60 % of what wgmma does
  if (capability >= 86) return {512, 128, 24, 1};
  return {1024, 64, 40, 1};
}

double estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                   const ProblemSize& size, const PerSequenceCosts& costs) {
  const HstuAttentionParams& params = spec.params();
  const Resources resources(params, config);
  if (config.schedule == "per_sequence") {
    PerSequenceKernel kernel;
    kernel.warp_rows = resources.warp_rows;
    kernel.chunk_columns = resources.chunk_columns;
    kernel.resident = resident_ctas(resources.threads, resources.registers_needed, resources.shared_bytes, device);
    kernel.product_columns = static_cast<double>(params.attn_dim + params.hidden_dim);
    kernel.sum_columns = static_cast<double>(params.hidden_dim);
    return per_sequence_estimate_ms(params, config, device, size, kernel, costs);
  }
  const Rates rates = rates_of(device.capability());
  const bool ieee = is_ieee(params);
  const int64_t longest = std::min(size.max_seq_len, kLongestCounted);
  const SequenceSize sequence = assumed_sequence(spec, size);
  const bool delta = spec.query_rows() != QueryRows::kAll;
  // Loads and barriers go by KV tiles; products and scores by warps and chunks, which skip what they may not see.
  const TileCounts tiles_read = count_tiles(params, sequence, config.block_m, config.block_n);
  const TileCounts chunks = count_tiles(params, sequence, resources.warp_rows, resources.chunk_columns);

  const double element = static_cast<double>(size_of(params.dtype));
  const double columns = static_cast<double>(resources.qk_row_bytes + resources.v_row_bytes) / element;
  const double pairs = chunks.kv_tiles * static_cast<double>(resources.warp_rows * resources.chunk_columns);
  const double tensor_rate = params.dtype == DataType::kFp32 ? rates.tensor_16bit / 2 : rates.tensor_16bit;
  const double multiply = pairs * columns / (ieee ? rates.fma : tensor_rate);
  const double scores = score_work(params) * (config.activation == "accurate" ? kAccurateFactor : 1);
  const double activate = pairs * scores / kMufu;
  const double query_bytes =
      resources.query_in_registers ? 0 : static_cast<double>(resources.warp_rows * resources.qk_row_bytes);
  const double operand_bytes =
      static_cast<double>(resources.chunk_columns * (resources.qk_row_bytes + resources.v_row_bytes));
  // Without ldmatrix the four lanes of a quad ask for the same words.
  const double shared = chunks.kv_tiles * (query_bytes + operand_bytes * (ieee ? 2 : 1)) / kSharedBytes;
  const double loads = tiles_read.kv_tiles * static_cast<double>(config.block_n) * columns * element / rates.l2_bytes;

  const double resident = static_cast<double>(config.blocks_per_sm);
  const double overlapped =
      std::min(kHidden, std::max(1.0, static_cast<double>(config.warps) * resident / kSchedulers));
  const double busiest = std::max({multiply, activate, shared, loads});
  const double products = std::max(kImperfection * busiest, (multiply + activate + shared) / overlapped);
  const double exposed = tiles_read.kv_tiles * (kBarrierCycles + (config.stages == 1 ? kExposedCycles : 0)) / resident;
  const double tiles =
      tiles_read.row_tiles * (kTileCycles + kTileCyclesPerColumn * static_cast<double>(params.hidden_dim)) / resident;
  const double all_tiles = static_cast<double>(ceil_div(delta ? size.rows_of(kQueryAxis) : longest, config.block_m));
  const double empty = std::max(0.0, all_tiles - tiles_read.row_tiles) * kEmptyCycles / resident;

  const double heads = static_cast<double>(params.heads * size.batch);
  double cycles = heads * (rates.issue * (products + exposed + tiles) + empty) / static_cast<double>(device.sm_count);
  if (size.small_batch) {
    // As long as the longest tile, which has a multiprocessor to itself.
    const std::vector<int64_t> counts = count_kv_tiles(params, sequence, config.block_m, config.block_n);
    const double longest_tile = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
    const double share = longest_tile / std::max(tiles_read.kv_tiles, 1.0);
    const double alone = std::min(kHidden, std::max(1.0, static_cast<double>(config.warps) / kSchedulers));
    const double chain = std::max(kImperfection * busiest, (multiply + activate + shared) / alone);
    const double once = tiles / std::max(tiles_read.row_tiles, 1.0);
    cycles = std::max(cycles, rates.issue * (share * (chain + exposed * resident) + once * resident));
  }
  return (cycles + kStartCycles) / kClockKhz;
}

}  // namespace hstujit::sm80
