// Kernels by skeletons and templates that are not those of the build.
#pragma once

#include "compiler/emit/source.h"
#include "compiler/ir/build.h"

namespace hstujit {

inline Result<EmittedKernel> emit_with(const Skeleton& skeleton, const std::vector<EmbeddedTemplate>& templates,
                                       const nlohmann::ordered_json& schema, const OpSpec& spec, Direction direction,
                                       const KernelConfig& config, const DeviceSpec& device) {
  const auto context = make_context();
  HSTUJIT_ASSIGN_OR_RETURN(const Module module, build_module(*context, spec));
  return emit_module(*module, skeleton, templates, schema, spec, direction, config, device);
}

}  // namespace hstujit
