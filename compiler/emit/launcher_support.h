// CUDA source that every program around a generated kernel begins with: batches, tensors, tensor maps, clusters.
#pragma once

#include <string_view>

namespace hstujit {

extern const std::string_view kLauncherSupport;

}  // namespace hstujit
