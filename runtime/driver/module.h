// A cubin loaded into one context, and the kernel in it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/driver/device.h"

namespace hstujit {

class Module {
 public:
  // Loads `cubin` into the thread's current context, which must be `device`'s, and takes `kernel_name` from it with
  // `shared_memory` dynamic bytes per block allowed. kCompileFailed when the bytes are no cubin for this device.
  static Result<std::shared_ptr<const Module>> load(CudaDriverPtr driver, const DeviceContext& device,
                                                    std::string_view cubin, const std::string& kernel_name,
                                                    int64_t shared_memory);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  cuda::Function function() const { return function_; }
  const DeviceContext& device() const { return device_; }

 private:
  Module(CudaDriverPtr driver, const DeviceContext& device) : driver_(std::move(driver)), device_(device) {}

  CudaDriverPtr driver_;
  DeviceContext device_;
  cuda::Module module_ = nullptr;
  cuda::Function function_ = nullptr;
};

using ModulePtr = std::shared_ptr<const Module>;

}  // namespace hstujit
