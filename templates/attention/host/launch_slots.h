// Kernel parameters and constants that the attention skeletons share: host side of the device struct `Params`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/launch_plan.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

// Pointer, row stride and head stride of a tensor: members <tensor>, <tensor>_row_stride, <tensor>_head_stride.
std::vector<ParamSlot> attention_tensor_slots(const Signature& signature, const std::string& tensor, std::string type);

// Member `name`: the map of a tensor of 16-bit data, with boxes of 64 columns and `rows` rows.
ParamSlot attention_map_slot(const Signature& signature, std::string name, std::string_view tensor, int64_t rows);

// Slots common to the skeletons of a direction: outputs and their strides, operands that the score reads with theirs,
// [max_seq_len with a bias, or backward of the last rows], seq_offsets, [seq_offsets_q], operands that the mask reads,
// total_rows,
// [total_query_rows], batch, max_query_rows, alpha, [dropout_ratio, seed or seed_tensor, offset], inverse_scale.
// Members have the names that templates/attention/*/kernel.cuh use. 16-bit data types are `u16` on the device.
std::vector<ParamSlot> attention_common_slots(const AttentionSpec& spec, Direction direction = Direction::kForward);

// ceil((size of the tensor's first dimension + bias) / divisor)
GridFactor size_factor(const Signature& signature, std::string_view tensor, int64_t divisor = 1, int64_t bias = 0);

// The batch's sequences.
GridFactor batch_factor(const Signature& signature);

// Factors of "one CTA per (sequence, head, row tile)": of rows of q forward, of all rows backward.
std::vector<GridFactor> attention_grid(const AttentionSpec& spec, int64_t block_m,
                                       Direction direction = Direction::kForward);

// Factors of "one CTA per (sequence, head)".
std::vector<GridFactor> sequence_grid(const AttentionSpec& spec, Direction direction);

// Factors of "one CTA for each tile of rows of any sequences", as many as there are at most; none where there is no
// sequence, though there are rows that belong to none.
std::vector<GridFactor> packed_attention_grid(const AttentionSpec& spec, int64_t block_m, Direction direction);

// Constants of the generated Config that say which rows q has, kDelta and kJaggedQueries, and whether tiles of
// columns begin at even ones, as pairs of the bias do: kEvenTiles; where heads have softmax and dropout,
// kDropoutSoftmax, and with softmax_score kSoftmaxScoreDropout.
Constants attention_constants(const AttentionSpec& spec);

// Beginning of kernel names: the operator, "_jagged" where sequences have different numbers of rows in q, and what
// operands add (Operand::kernel_suffix).
std::string attention_kernel_prefix(const AttentionSpec& spec);

}  // namespace hstujit
