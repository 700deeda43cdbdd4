// The size of what a producer on Hopper says of a tile: TileInfo of templates/attention/sm90_forward/shared.cuh and
// sm90_backward/shared.cuh.
#pragma once

#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

// Bytes, with 4 for the contexts and 4 between that and the next one where each sequence has its own number of them,
// or where a sequence knows its own, more where the mask reads operands, and with a pointer and a stride in place of
// counts where launches give intervals.
inline int64_t tile_info_bytes(const AttentionSpec& spec) {
  if (spec.params().has_intervals()) return spec.knows_sequence() ? 56 : 48;
  if (spec.mask_reads()) return 64;
  return spec.takes_counts() ? 40 : 32;
}

}  // namespace hstujit
