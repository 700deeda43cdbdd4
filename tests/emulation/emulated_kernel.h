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

  // One launch, as the plan says it: the main kernel with so many blocks to a cluster, and those that follow. `seed`
  // decides in which order threads take turns, and an odd one that the blocks of a list run at the same time. The
  // workspace is as large as the plan says, and poison where it does not ask for zeroes; throws std::runtime_error when
  // a kernel writes beside it.
  void launch(const std::vector<HstujitHostValue>& values, unsigned seed, unsigned cluster = 1) const;

 private:
  LaunchPlan plan_;
  void* library_ = nullptr;
  std::vector<void (*)(const void* params)> entries_;  // of the main kernel and of those that follow
};

}  // namespace hstujit
