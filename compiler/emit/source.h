// (OpSpec, KernelConfig, DeviceSpec) -> CUDA source, laid out as docs/generated-source.md says. The same inputs and
// library give the same bytes: nothing here depends on time, paths, locale or the order of addresses.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compiler/plan/kernel_config.h"
#include "compiler/plan/launch_plan.h"
#include "compiler/plan/skeleton.h"
#include "compiler/spec/device_spec.h"
#include "compiler/spec/op_spec.h"
#include "compiler/support/status.h"
#include "templates/embedded.h"

namespace mlir {
class ModuleOp;
}

namespace hstujit {

struct EmittedKernel {
  std::string source;  // self-contained CUDA
  std::string ir;      // MLIR text of the region functions
  LaunchPlan plan;
};

// kUnsupported with the skeleton's reasons when it rejects this spec, config and device.
Result<EmittedKernel> emit_kernel(const OpSpec& spec, Direction direction, const KernelConfig& config,
                                  const DeviceSpec& device);

// The same of `module`, the operator's IR on which no pass has run, for any skeleton and templates; `schema` is
// operator_schema() of the spec's operator. The passes run on the module.
Result<EmittedKernel> emit_module(mlir::ModuleOp module, const Skeleton& skeleton,
                                  const std::vector<EmbeddedTemplate>& templates, const nlohmann::ordered_json& schema,
                                  const OpSpec& spec, Direction direction, const KernelConfig& config,
                                  const DeviceSpec& device);

}  // namespace hstujit
