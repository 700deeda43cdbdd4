#include "runtime/driver/device.h"

#include <fmt/format.h>

namespace hstujit {

namespace {

// The "a" suffix unlocks wgmma, TMA and setmaxnreg: kernels for such a device are built for exactly it.
std::string architecture(int major, int minor) { return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : ""); }

Result<int64_t> attribute(const CudaDriver& driver, cuda::DeviceAttribute which, cuda::Device device) {
  int value = 0;
  HSTUJIT_CUDA_CHECK(driver, device_get_attribute(&value, which, device));
  return int64_t{value};
}

Result<DeviceContext> identify(const CudaDriver& driver, cuda::Context context, int ordinal) {
  DeviceContext result{context, 0, ordinal};
  if (const cuda::Error error = context_identity(driver, context, &result.id); error != cuda::kSuccess) {
    return driver.failure(error, "cuCtxGetId", __FILE__, __LINE__);
  }
  return result;
}

}  // namespace

Result<int> device_count(const CudaDriver& driver) {
  int count = 0;
  HSTUJIT_CUDA_CHECK(driver, device_get_count(&count));
  return count;
}

Result<DeviceSpec> query_device(const CudaDriver& driver, int ordinal) {
  HSTUJIT_ASSIGN_OR_RETURN(const int count, device_count(driver));
  if (count == 0) return Status(Code::kNoDevice, "the CUDA driver finds no GPU on this machine");
  if (ordinal < 0 || ordinal >= count) {
    return Status(Code::kNoDevice,
                  fmt::format("device is {}; the CUDA driver has devices 0 to {}", ordinal, count - 1));
  }
  cuda::Device device = 0;
  HSTUJIT_CUDA_CHECK(driver, device_get(&device, ordinal));
  char name[256] = {};
  HSTUJIT_CUDA_CHECK(driver, device_get_name(name, sizeof(name) - 1, device));

  DeviceSpec spec;
  spec.name = name;
  HSTUJIT_ASSIGN_OR_RETURN(const int64_t major, attribute(driver, cuda::kCapabilityMajor, device));
  HSTUJIT_ASSIGN_OR_RETURN(const int64_t minor, attribute(driver, cuda::kCapabilityMinor, device));
  spec.arch = architecture(static_cast<int>(major), static_cast<int>(minor));
  HSTUJIT_ASSIGN_OR_RETURN(spec.sm_count, attribute(driver, cuda::kMultiprocessorCount, device));
  HSTUJIT_ASSIGN_OR_RETURN(spec.shared_memory, attribute(driver, cuda::kMaxSharedMemoryPerBlockOptin, device));
  HSTUJIT_ASSIGN_OR_RETURN(spec.registers, attribute(driver, cuda::kMaxRegistersPerMultiprocessor, device));
  HSTUJIT_ASSIGN_OR_RETURN(spec.max_threads, attribute(driver, cuda::kMaxThreadsPerMultiprocessor, device));
  HSTUJIT_ASSIGN_OR_RETURN(spec.l2_bytes, attribute(driver, cuda::kL2CacheSize, device));
  return spec;
}

Result<DeviceContext> current_context(const CudaDriver& driver) {
  cuda::Context context = nullptr;
  HSTUJIT_CUDA_CHECK(driver, context_get_current(&context));
  if (context == nullptr) return DeviceContext{};
  cuda::Device device = 0;
  HSTUJIT_CUDA_CHECK(driver, context_get_device(&device));
  return identify(driver, context, device);
}

Result<ContextGuard> ContextGuard::enter(CudaDriverPtr driver, int ordinal) {
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceContext current, current_context(*driver));
  if (current.context != nullptr && (ordinal < 0 || ordinal == current.ordinal)) {
    return ContextGuard(std::move(driver), current, false);
  }
  const int wanted = ordinal < 0 ? 0 : ordinal;
  HSTUJIT_ASSIGN_OR_RETURN(const int count, device_count(*driver));
  if (wanted >= count) {
    return Status(Code::kNoDevice,
                  count == 0 ? std::string("the CUDA driver finds no GPU on this machine")
                             : fmt::format("device is {}; the CUDA driver has devices 0 to {}", wanted, count - 1));
  }
  cuda::Device device = 0;
  HSTUJIT_CUDA_CHECK(*driver, device_get(&device, wanted));
  cuda::Context context = nullptr;
  // Retained for the life of the process: modules loaded into it are referred to by op handles of any lifetime, and
  // the CUDA runtime, which other libraries in the process use, holds it in the same way.
  HSTUJIT_CUDA_CHECK(*driver, primary_context_retain(&context, device));
  HSTUJIT_CUDA_CHECK(*driver, context_push(context));
  auto identified = identify(*driver, context, wanted);
  if (!identified.ok()) {
    driver->context_pop(&context);
    return identified.status();
  }
  return ContextGuard(std::move(driver), *identified, true);
}

ContextGuard::ContextGuard(ContextGuard&& other) noexcept
    : driver_(std::move(other.driver_)), device_(other.device_), pushed_(other.pushed_) {
  other.pushed_ = false;
}

ContextGuard::~ContextGuard() {
  if (!pushed_) return;
  cuda::Context context = nullptr;
  driver_->context_pop(&context);
}

}  // namespace hstujit
