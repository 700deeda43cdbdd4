// A cubin loaded into one context, and the kernels in it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/launch_plan.h"
#include "runtime/driver/device.h"

namespace hstujit {

class Module {
 public:
  // Loads `cubin` into the thread's current context, which must be `device`'s, and takes the kernels of `plan` from it,
  // the main one with its shared memory allowed. kCompileFailed when the bytes are no cubin for this device, or one
  // that lacks a kernel.
  static Result<std::shared_ptr<const Module>> load(CudaDriverPtr driver, const DeviceContext& device,
                                                    std::string_view cubin, const LaunchPlan& plan);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  cuda::Function function() const { return function_; }
  cuda::Function following(size_t index) const { return following_[index]; }  // as in the plan
  const DeviceContext& device() const { return device_; }

 private:
  Result<cuda::Function> find(const std::string& kernel_name) const;

  Module(CudaDriverPtr driver, const DeviceContext& device) : driver_(std::move(driver)), device_(device) {}

  CudaDriverPtr driver_;
  DeviceContext device_;
  cuda::Module module_ = nullptr;
  cuda::Function function_ = nullptr;
  std::vector<cuda::Function> following_;
};

using ModulePtr = std::shared_ptr<const Module>;

}  // namespace hstujit
