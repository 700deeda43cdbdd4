// The skeleton of operators over rows. Both directions have the same configs, which differ in what they keep.
#pragma once

#include "compiler/plan/typed_skeleton.h"
#include "compiler/spec/row_spec.h"

namespace hstujit::row {

std::vector<RowConfig> space(const RowSpec& spec, Direction direction);
std::vector<Rejection> reject(const RowSpec& spec, Direction direction, const RowConfig& config,
                              const DeviceSpec& device);
LaunchPlan launch_plan(const RowSpec& spec, Direction direction, const RowConfig& config, const DeviceSpec& device);
Constants constants(const RowSpec& spec, Direction direction, const RowConfig& config);
std::string instruction_wrappers(const RowSpec& spec, Direction direction, const RowConfig& config);

}  // namespace hstujit::row
