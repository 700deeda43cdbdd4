#include "templates/attention/sm80_backward/cost.h"

#include <algorithm>

#include "compiler/spec/operators/hstu_attention/own_score.h"
#include "compiler/support/integers.h"
#include "templates/attention/host/tile_counts.h"
#include "templates/attention/sm80/cost_rates.h"
#include "templates/attention/sm80_backward/resources.h"
#include "templates/attention/sm80_forward/resources.h"

namespace hstujit::sm80 {

namespace {

// Nothing has been fitted to measurements of "grid": the figures are those of the forward model.
constexpr double kHidden = 2.5;         // warps per scheduler that hide one another's latencies
constexpr double kScore = 1.5;          // a score with its derivative, over the score alone
constexpr double kTileCycles = 5000;    // a tile's first loads and last stores
constexpr double kEmptyCycles = 500;    // a CTA past its sequence's end
constexpr double kExposedCycles = 900;  // a moving tile's loads, without a stage to run ahead
constexpr double kBarrierCycles = 120;  // a moving tile's barrier and loop

}  // namespace

PerSequenceCosts backward_per_sequence_costs() {
  PerSequenceCosts costs;
  costs.score = 0.8;  // with its derivative
  return costs;
}

double backward_estimate_ms(const AttentionSpec& spec, const AttentionConfig& config, const DeviceSpec& device,
                            const ProblemSize& size, const PerSequenceCosts& costs) {
  const HstuAttentionParams& params = spec.params();
  const BackwardResources resources(params, config);
  const auto roles = static_cast<double>(resources.roles);
  const auto attn = static_cast<double>(params.attn_dim), hidden = static_cast<double>(params.hidden_dim);
  // S, dP, dq; S, dP, dk, dv, and one S more where dk and dv are apart.
  const double products = (roles + 2) * attn + 3 * hidden;
  if (config.schedule == "per_sequence") {
    PerSequenceKernel kernel;
    kernel.warp_rows = resources.warp_rows;
    kernel.chunk_columns = resources.chunk_columns;
    kernel.resident = resident_ctas(resources.threads, resources.registers_needed, resources.shared_bytes, device);
    kernel.roles = resources.roles;
    kernel.product_columns = products;
    kernel.sum_columns = 2 * attn + hidden;
    return per_sequence_estimate_ms(params, config, device, size, kernel, costs);
  }
  const Rates rates = rates_of(device.capability());
  const int64_t longest = std::min(size.max_seq_len, kLongestCounted);
  const SequenceSize sequence = assumed_sequence(spec, size);
  // Tiles of rows and the columns that they see; of columns and the rows that see them there are about as many pairs.
  const TileCounts tiles_read = count_tiles(params, sequence, config.block_m, config.block_n);
  const TileCounts chunks = count_tiles(params, sequence, resources.warp_rows, resources.chunk_columns);

  const double pairs = chunks.kv_tiles * static_cast<double>(resources.warp_rows * resources.chunk_columns);
  const double tensor_rate = params.dtype == DataType::kFp32 ? rates.tensor_16bit / 2 : rates.tensor_16bit;
  const double multiply = pairs * products / (is_ieee(params) ? rates.fma : tensor_rate);
  const double scores = kScore * score_work(params) * (config.activation == "accurate" ? kAccurateFactor : 1);
  const double activate = roles * pairs * scores / kMufu;
  const double loads = roles * tiles_read.kv_tiles * static_cast<double>(config.block_n * resources.row_bytes);

  const double resident = static_cast<double>(config.blocks_per_sm);
  const double overlapped =
      std::min(kHidden, std::max(1.0, static_cast<double>(config.warps) * resident / kSchedulers));
  const double work = std::max((multiply + activate) / overlapped, loads / rates.l2_bytes);
  const double exposed =
      roles * tiles_read.kv_tiles * (kBarrierCycles + (config.stages == 1 ? kExposedCycles : 0)) / resident;
  const auto column_tiles = static_cast<double>(ceil_div(sequence.rows, config.block_m));
  const double own_tiles = tiles_read.row_tiles + (roles - 1) * column_tiles;
  const double tiles = own_tiles * kTileCycles / resident;
  const double all_tiles = roles * static_cast<double>(ceil_div(longest, config.block_m));
  const double empty = std::max(0.0, all_tiles - own_tiles) * kEmptyCycles / resident;

  const double heads = static_cast<double>(params.heads * size.batch);
  const double cycles = heads * (rates.issue * (work + exposed + tiles) + empty) / static_cast<double>(device.sm_count);
  return (cycles + kStartCycles) / kClockKhz;
}

}  // namespace hstujit::sm80
