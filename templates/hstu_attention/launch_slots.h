// Kernel parameters that the hstu_attention skeletons share: host side of the device struct `Params`.
#pragma once

#include <vector>

#include "compiler/plan/launch_plan.h"
#include "compiler/spec/hstu_attention/spec.h"

namespace hstujit {

// Slots common to the forward skeletons: out, its strides, seq_offsets, [num_targets], total_rows, batch, max_seq_len,
// alpha, inverse_scale. Members have the names that templates/hstu_attention/*.cuh use. 16-bit data types are `u16` on
// the device.
std::vector<ParamSlot> hstu_attention_common_slots(const HstuAttentionSpec& spec);

// Factors of "one block per (sequence, head, row tile)".
std::vector<GridFactor> hstu_attention_grid(const HstuAttentionSpec& spec, int64_t block_m);

}  // namespace hstujit
