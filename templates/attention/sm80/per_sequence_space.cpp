#include "templates/attention/sm80/per_sequence_space.h"

#include "templates/attention/sm80_forward/resources.h"

namespace hstujit::sm80 {

std::vector<AttentionConfig> per_sequence_space(const HstuAttentionParams& params) {
  std::vector<AttentionConfig> configs;
  for (const int64_t warps : {1, 2, 4}) {
    for (const int64_t warp_rows : {16, 32}) {
      for (const int64_t block_n : {16, 32}) {
        for (const int64_t resident_warps : {16, 21, 12}) {
          AttentionConfig config;
          config.block_m = warps * warp_rows;
          config.block_n = block_n;
          config.stages = 2;
          config.warps = warps;
          config.schedule = "per_sequence";
          config.blocks_per_sm = resident_warps / warps;
          config.activation = is_ieee(params) ? "accurate" : "mufu";
          configs.push_back(std::move(config));
        }
      }
    }
  }
  return configs;
}

}  // namespace hstujit::sm80
