// Host side of kernels.cuh, softmax_rows.cuh and ../interval_bounds.cuh: the kernels that follow one of backward for
// the gradients of operands, and the ones in front of it.
#pragma once

#include <vector>

#include "compiler/plan/launch_plan.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

// Lets the kernel of softmax_rows.cuh run in front of the plan's where heads have softmax; the plan's kernel is
// attention_gradients() of the template then.
void add_softmax_rows(const AttentionSpec& spec, LaunchPlan& plan);

// The same of another kernel that leaves the same: one CTA for so many rows of a (sequence, head).
struct SoftmaxRowsKernel {
  int64_t rows;
  int threads;
  int64_t shared_memory;
  int resident_blocks;
};
void add_softmax_rows(const AttentionSpec& spec, const SoftmaxRowsKernel& kernel, LaunchPlan& plan);

// The same of interval_bounds.cuh where launches take attn_func. Called when the plan has everything else.
void add_interval_bounds(const AttentionSpec& spec, int64_t q_tile_rows, LaunchPlan& plan);

// Gradients that a plan finds otherwise.
struct FoundOtherwise {
  int64_t site_warps = 0;  // of each CTA, which leave sums of what the score reads (AttentionConfig::site_warps)
  bool bias = false;       // by a kernel that the plan gets from its template
};

// Adds to the plan of a backward kernel what else the instance asks for: the kernels, the members of Params that they
// read and the plan has not, and the workspace, where the plan has none that is as large: one of fp32 for each row of
// q.
void add_gradient_kernels(const AttentionSpec& spec, const DeviceSpec& device, const FoundOtherwise& found,
                          LaunchPlan& plan);

// Why they cannot run on the device.
std::vector<Rejection> gradient_rejections(const AttentionSpec& spec, const DeviceSpec& device);

}  // namespace hstujit
