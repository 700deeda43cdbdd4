// A cubin loaded into one context, and the kernels in it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/launch_plan.h"
#include "runtime/driver/device.h"
#include "runtime/driver/launch_marks.h"

namespace hstujit {

// How long a module must stay loaded.
enum class Stay {
  kAsContext,      // as long as its owner has it; launches leave no marks
  kUntilLaunched,  // until launches are done: they leave marks, and may_unload() says when
};

class Module {
 public:
  // Loads `cubin` into the thread's current context, which must be `device`'s, and takes the kernels of `plan` from it,
  // with their shared memory allowed. kCompileFailed when the bytes are no cubin for this device, or one
  // that lacks a kernel.
  static Result<std::shared_ptr<const Module>> load(CudaDriverPtr driver, const DeviceContext& device,
                                                    std::string_view cubin, const LaunchPlan& plan,
                                                    Stay stay = Stay::kAsContext);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  cuda::Function function() const { return function_; }
  cuda::Function following(size_t index) const { return following_[index]; }  // as in the plan
  const DeviceContext& device() const { return device_; }

  // Follows what a launch has enqueued on `stream`.
  void mark_launch(cuda::Stream stream) const {
    if (marks_) marks_->mark(stream);
  }

  // Whether nothing that was launched needs the module any more: all is done, and no CUDA graph has captured a launch.
  // False for a module of Stay::kAsContext. Any context may be current. Not during a launch.
  bool may_unload() const;

 private:
  // Calls `work` with the module's context current; not where that was destroyed.
  template <typename Work>
  void in_context(const Work& work) const;
  Result<cuda::Function> find(const std::string& kernel_name) const;
  Status allow_shared_memory(cuda::Function function, int64_t bytes) const;

  Module(CudaDriverPtr driver, const DeviceContext& device) : driver_(std::move(driver)), device_(device) {}

  CudaDriverPtr driver_;
  DeviceContext device_;
  cuda::Module module_ = nullptr;
  cuda::Function function_ = nullptr;
  std::vector<cuda::Function> following_;
  std::unique_ptr<LaunchMarks> marks_;  // null: Stay::kAsContext
};

using ModulePtr = std::shared_ptr<const Module>;

}  // namespace hstujit
