// The size of what a producer on Hopper says of a tile: TileInfo of templates/attention/sm90_forward/shared.cuh and
// sm90_backward/shared.cuh.
#pragma once

#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// Bytes, with 4 for the contexts and 4 between that and the next one where each sequence has its own number of them,
// and with a pointer and a stride in place of counts where launches give intervals.
inline int64_t tile_info_bytes(const HstuAttentionParams& params) {
  return params.has_intervals() ? 48 : params.num_contexts ? 40 : 32;
}

}  // namespace hstujit
