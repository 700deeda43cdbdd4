// The arguments of a gemm operator as its kernels get them: members of Params.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/launch_plan.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit::gemm {

// The map of a matrix, or of one of each sequence, whose boxes are one swizzled line of its contiguous dimension, times
// `box` of the other.
ParamSlot map_slot(const GemmSpec& spec, std::string name, const std::string& argument, int64_t box);

// Both factors by their addresses and strides: members a, a_stride, b and b_stride, and b_sequence_stride where b has
// an axis of sequences.
std::vector<ParamSlot> factor_slots(const GemmSpec& spec);

// Slots of what the epilogue reads, the result where its address is asked for, and the extents that a launch says:
// `rows` of the result and `depth` of the sum; seq_offsets, of so many `sequences`, where those have products of their
// own; and column_sums and column_scale, where they are a second result.
std::vector<ParamSlot> operand_slots(const GemmSpec& spec, bool out_address);

inline constexpr int64_t kLineBytes = 128;  // of shared memory, of a row or column in a stage

// Elements of the sum that a stage has: a line of shared memory.
int64_t stage_depth(const GemmSpec& spec);

// No fewer than there are tiles of so many rows and columns. Of rows of sequences that is up to as many times too many
// as there are sequences: LaunchPlan::persistent_blocks bounds the grid.
std::vector<GridFactor> tile_grid(const GemmSpec& spec, int64_t rows, int64_t columns);

// Constants of the generated source that say which product it is: columns, a_transposed, b_transposed, sequences,
// sums_rows, depth, result_rows (0 of other products, whose rows a launch says), column_sums (none, those of a,
// those of b), column_scale, and a_alignment, b_alignment and out_alignment: bytes that rows of factors and of matrices
// as large as the result begin at multiples of.
void add_constants(const GemmSpec& spec, Constants& constants);

}  // namespace hstujit::gemm
