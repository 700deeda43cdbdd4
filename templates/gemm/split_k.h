// Sums over rows that CTAs share: host side of split_k.cuh.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/gemm_config.h"
#include "compiler/plan/launch_plan.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/gemm_spec.h"

namespace hstujit::gemm {

// Into how many parts a sum over rows may be cut, where tiles of so many rows and columns are taken by so many CTAs, or
// clusters: as many as fill one round of all of them, and a few rounds. Fewer parts are less to add up, more rounds end
// closer together. 1 alone for other sums.
std::vector<int64_t> splits_of(const GemmInterface& gemm, int64_t rows, int64_t columns, int64_t ctas);

// Why the config's parts are none that the sum can have.
void reject_parts(const GemmSpec& spec, const GemmConfig& config, std::vector<Rejection>& reasons);

// The workspace of the parts and the kernel that adds them up, where there are several.
void add_parts(const GemmSpec& spec, const GemmConfig& config, const DeviceSpec& device, LaunchPlan& plan);

// Prints the name that includes split_k.cuh; empty where there is one part.
std::string print_split_k(const GemmConfig& config);

}  // namespace hstujit::gemm
