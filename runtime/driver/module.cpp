#include "runtime/driver/module.h"

#include <fmt/format.h>

namespace hstujit {

Result<ModulePtr> Module::load(CudaDriverPtr driver, const DeviceContext& device, std::string_view cubin,
                               const std::string& kernel_name, int64_t shared_memory) {
  const std::shared_ptr<Module> module(new Module(std::move(driver), device));
  const CudaDriver& cuda = *module->driver_;
  const cuda::Error loaded = cuda.module_load_data(&module->module_, cubin.data());
  if (loaded == cuda::kErrorInvalidImage || loaded == cuda::kErrorNoBinaryForGpu) {
    return Status(Code::kCompileFailed, fmt::format("the cubin of {} ({} bytes) is not for device {}: {}", kernel_name,
                                                    cubin.size(), device.ordinal, cuda.describe(loaded)));
  }
  if (loaded != cuda::kSuccess) return cuda.failure(loaded, "cuModuleLoadData", __FILE__, __LINE__);
  const cuda::Error found = cuda.module_get_function(&module->function_, module->module_, kernel_name.c_str());
  if (found == cuda::kErrorNotFound) {
    return Status(Code::kCompileFailed, fmt::format("the cubin does not define the kernel {}", kernel_name));
  }
  if (found != cuda::kSuccess) return cuda.failure(found, "cuModuleGetFunction", __FILE__, __LINE__);
  if (shared_memory > 0) {
    HSTUJIT_CUDA_CHECK(cuda, function_set_attribute(module->function_, cuda::kMaxDynamicSharedSizeBytes,
                                                    static_cast<int>(shared_memory)));
  }
  return ModulePtr(module);
}

Module::~Module() {
  if (module_ == nullptr) return;
  // The context may have been destroyed, and its module with it: then pushing it fails and nothing is left to do.
  unsigned long long id = 0;
  if (context_identity(*driver_, device_.context, &id) != cuda::kSuccess || id != device_.id) return;
  if (driver_->context_push(device_.context) != cuda::kSuccess) return;
  driver_->module_unload(module_);
  cuda::Context context = nullptr;
  driver_->context_pop(&context);
}

}  // namespace hstujit
