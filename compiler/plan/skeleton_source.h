// Text that a skeleton adds to generated source. kernel.cpp defines it beside the skeleton, and CMake generates the
// table of them, which the emitter needs. libhstujit.so launches kernels and links none of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/skeleton.h"

namespace hstujit {

// The functions are those of Skeleton.
class SkeletonSource {
 public:
  virtual std::string_view name() const = 0;
  virtual Constants constants(const OpSpec& spec, const KernelConfig& config) const = 0;
  virtual std::string instruction_wrappers(const OpSpec& spec, const KernelConfig& config) const = 0;

 protected:
  ~SkeletonSource() = default;
};

// The sources of all skeletons of the build, in order of name.
const std::vector<const SkeletonSource*>& skeleton_sources();

}  // namespace hstujit
