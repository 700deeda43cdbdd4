// The kernel that an op wants for one bucket: chosen, found or made, and recorded where it was missed.
#pragma once

#include <functional>
#include <future>
#include <mutex>
#include <vector>

#include "runtime/dispatch/kernel_supply.h"
#include "runtime/engine/engine.h"

namespace hstujit {

struct WantedKernel {
  Instance instance;  // its lengths are for tuning on a miss only
  Direction direction = Direction::kForward;
  LengthMode length_mode = LengthMode::kPow2;
  Restriction restriction = {};
  DeviceSpec device = {};
  ProblemBucket bucket = 1;
};

// May compile and, where a miss asks for that, tune on the device `ordinal`. Needs no context. `on_miss` is called
// before a kernel that no cache has is compiled.
Result<SuppliedKernel> obtain_kernel(Engine& engine, const WantedKernel& wanted, int ordinal,
                                     const std::function<void()>& on_miss = {});

// Whether kernels are compiled beside one that a caller waits for: compiles run side by side, and a miss is answered by
// a compile alone.
bool compiles_ahead(Engine& engine);

// Kernels that are compiled beside the one that a caller waits for, because it will ask for them next.
class CompilesAhead {
 public:
  CompilesAhead() = default;
  CompilesAhead(const CompilesAhead&) = delete;
  CompilesAhead& operator=(const CompilesAhead&) = delete;
  // Waits for those under way.
  ~CompilesAhead() = default;

  // Compiles kernels of the same bucket in the instance's other directions, on threads of their own, where
  // compiles_ahead() says so. A failure is told to whoever asks for that kernel.
  void start(const EnginePtr& engine, const WantedKernel& wanted, int ordinal);

 private:
  std::mutex mutex_;
  std::vector<std::future<void>> under_way_;
};

}  // namespace hstujit
