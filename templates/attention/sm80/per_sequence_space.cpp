#include "templates/attention/sm80/per_sequence_space.h"

#include <algorithm>
#include <utility>

namespace hstujit::sm80 {

std::vector<AttentionConfig> per_sequence_space(const HstuAttentionParams& params,
                                                std::initializer_list<int64_t> warp_rows) {
  std::vector<AttentionConfig> configs;
  constexpr int64_t kNarrow = 128;  // columns of q and v; of wider ones, wgmma's tiles were faster in all timings
  if (params.dtype == DataType::kFp32 || params.attn_dim + params.hidden_dim > kNarrow) return configs;
  for (const int64_t warps : {1, 2, 4}) {
    for (const int64_t rows : warp_rows) {
      for (const int64_t resident_warps : {21, 16, 12}) {
        AttentionConfig config;
        config.block_m = warps * rows;
        config.block_n = std::min<int64_t>(32, config.block_m);
        config.stages = 2;
        config.warps = warps;
        config.schedule = "per_sequence";
        config.blocks_per_sm = resident_warps / warps;
        configs.push_back(std::move(config));
      }
    }
  }
  return configs;
}

}  // namespace hstujit::sm80
