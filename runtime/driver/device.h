// A GPU as the driver shows it, and the context that work on it runs in.
#pragma once

#include "compiler/spec/device_spec.h"
#include "runtime/driver/cuda_driver.h"

namespace hstujit {

Result<int> device_count(const CudaDriver& driver);

// kNoDevice when `ordinal` is not one of the driver's devices.
Result<DeviceSpec> query_device(const CudaDriver& driver, int ordinal);

// A context that outlives the calling thread's use of it. Process-wide identity: `id` is never reused, while the
// address of a destroyed context may be.
struct DeviceContext {
  cuda::Context context = nullptr;
  unsigned long long id = 0;
  int ordinal = 0;
};

// DeviceContext::id of `context`. A driver older than 12.0 cannot tell two contexts at one address apart: it has the
// address alone. Inline, for launches ask.
inline cuda::Error context_identity(const CudaDriver& driver, cuda::Context context, unsigned long long* id) {
  if (driver.context_get_id != nullptr) return driver.context_get_id(context, id);
  *id = reinterpret_cast<unsigned long long>(context);
  return cuda::kSuccess;
}

// The thread's current context; context == nullptr when there is none.
Result<DeviceContext> current_context(const CudaDriver& driver);

// Holds the primary context of a device and makes it, or a context given, current on this thread for a scope.
class ContextGuard {
 public:
  // ordinal < 0: the current context, or the primary context of device 0 when there is none. ordinal >= 0: the current
  // context when it is on that device, else that device's primary context.
  static Result<ContextGuard> enter(CudaDriverPtr driver, int ordinal);

  ContextGuard(ContextGuard&& other) noexcept;
  ContextGuard& operator=(ContextGuard&&) = delete;
  ContextGuard(const ContextGuard&) = delete;
  ~ContextGuard();

  const DeviceContext& device() const { return device_; }

 private:
  ContextGuard(CudaDriverPtr driver, DeviceContext device, bool pushed)
      : driver_(std::move(driver)), device_(device), pushed_(pushed) {}

  CudaDriverPtr driver_;
  DeviceContext device_;
  bool pushed_;
};

}  // namespace hstujit
