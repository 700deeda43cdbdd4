#include "templates/attention/sm90_backward_fused/row_statistics.h"

#include "compiler/support/integers.h"
#include "templates/attention/host/tile_info.h"
#include "templates/common/sm90/machine.h"

namespace hstujit::sm90::backward {

RowStatisticsResources::RowStatisticsResources(const AttentionSpec& spec) {
  const HstuAttentionParams& params = spec.params();
  const int64_t row_bytes =
      (ceil_div(params.attn_dim, kTileColumns) + ceil_div(params.hidden_dim, kTileColumns)) * kSwizzleBytes;
  // Chooses as many rows as fit, since each row tile reads all of k and v, and then as many stages.
  const auto fits = [&](int64_t warpgroups, int64_t depth) {
    consumers = warpgroups;
    stages = depth;
    // As in Resources of sm90_backward_twopass.
    const int64_t small = 24 + tile_info_bytes(spec) + 4 + stages * (16 + 8) + 16 + 8 + 4, schedule = 12 + 4 * 2 + 2;
    shared_bytes = (rows() + stages * kColumns) * row_bytes + round_up(small + schedule, int64_t{128});
    return resident_bytes(shared_bytes, 1) <= kSharedLimit;
  };
  const int64_t most = params.has_bias() || params.has_softmax_score() ? 3 : 4;  // these take registers
  const auto choose = [&] {
    for (int64_t warpgroups = most; warpgroups > 0; --warpgroups) {
      for (const int64_t depth : {4, 3, 2}) {
        if (fits(warpgroups, depth)) return;
      }
    }
  };
  choose();
  consumer_registers = consumer_share(even_registers(threads(), 1), consumers, producer_registers);
}

}  // namespace hstujit::sm90::backward
