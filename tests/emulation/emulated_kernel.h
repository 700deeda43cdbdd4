// A generated kernel, compiled for the processor and launched in emulation (tests/emulation/cuda_emulation.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/emit/source.h"
#include "compiler/host/host_api.h"

namespace hstujit {

class EmulatedKernel {
 public:
  // Compiles `kernel` in a folder of its own; throws std::runtime_error with the compiler's words where that fails.
  explicit EmulatedKernel(const EmittedKernel& kernel);
  EmulatedKernel(const EmulatedKernel&) = delete;
  EmulatedKernel& operator=(const EmulatedKernel&) = delete;
  ~EmulatedKernel();

  // One launch, as the plan says it, with so many blocks to a cluster. `seed` decides in which order threads take
  // turns.
  void launch(const std::vector<HstujitHostValue>& values, unsigned seed, unsigned cluster = 1) const;

 private:
  LaunchPlan plan_;
  void* library_ = nullptr;
  void (*entry_)(const void* params) = nullptr;
};

}  // namespace hstujit
