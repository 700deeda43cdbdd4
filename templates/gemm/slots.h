// The arguments of a gemm operator as its kernels get them: members of Params.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/launch_plan.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit::gemm {

// The map of a matrix whose boxes are one swizzled line of its contiguous dimension, times `box` of the other.
ParamSlot map_slot(const GemmSpec& spec, std::string name, const std::string& argument, int64_t box);

// Both factors by their addresses and strides: members a, a_stride, b and b_stride.
std::vector<ParamSlot> factor_slots(const GemmSpec& spec);

// What the epilogue reads, the result where its address is asked for, and the extents that a launch says: `rows` of the
// result and `depth` of the sum.
std::vector<ParamSlot> operand_slots(const GemmSpec& spec, bool out_address);

// Constants of the generated source that say which product it is: columns, a_transposed and b_transposed.
void add_constants(const GemmSpec& spec, Constants& constants);

}  // namespace hstujit::gemm
