#include "runtime/driver/module.h"

#include <fmt/format.h>

namespace hstujit {

Result<ModulePtr> Module::load(CudaDriverPtr driver, const DeviceContext& device, std::string_view cubin,
                               const LaunchPlan& plan, Stay stay) {
  const std::shared_ptr<Module> module(new Module(std::move(driver), device));
  const CudaDriver& cuda = *module->driver_;
  const cuda::Error loaded = cuda.module_load_data(&module->module_, cubin.data());
  if (loaded == cuda::kErrorInvalidImage || loaded == cuda::kErrorNoBinaryForGpu) {
    return Status(Code::kCompileFailed,
                  fmt::format("the cubin of {} ({} bytes) is not for device {}: {}", plan.kernel_name, cubin.size(),
                              device.ordinal, cuda.describe(loaded)));
  }
  if (loaded != cuda::kSuccess) return cuda.failure(loaded, "cuModuleLoadData", __FILE__, __LINE__);
  HSTUJIT_ASSIGN_OR_RETURN(module->function_, module->find(plan.kernel_name));
  for (const FollowingKernel& kernel : plan.following) {
    HSTUJIT_ASSIGN_OR_RETURN(const cuda::Function function, module->find(kernel.kernel_name));
    module->following_.push_back(function);
    HSTUJIT_RETURN_IF_ERROR(module->allow_shared_memory(function, kernel.shared_memory));
  }
  HSTUJIT_RETURN_IF_ERROR(module->allow_shared_memory(module->function_, plan.shared_memory));
  if (stay == Stay::kUntilLaunched) module->marks_ = std::make_unique<LaunchMarks>(cuda);
  return ModulePtr(module);
}

Status Module::allow_shared_memory(cuda::Function function, int64_t bytes) const {
  if (bytes == 0) return {};
  HSTUJIT_CUDA_CHECK(*driver_,
                     function_set_attribute(function, cuda::kMaxDynamicSharedSizeBytes, static_cast<int>(bytes)));
  return {};
}

Result<cuda::Function> Module::find(const std::string& kernel_name) const {
  cuda::Function function = nullptr;
  const cuda::Error found = driver_->module_get_function(&function, module_, kernel_name.c_str());
  if (found == cuda::kErrorNotFound) {
    return Status(Code::kCompileFailed, fmt::format("the cubin does not define the kernel {}", kernel_name));
  }
  if (found != cuda::kSuccess) return driver_->failure(found, "cuModuleGetFunction", __FILE__, __LINE__);
  return function;
}

template <typename Work>
void Module::in_context(const Work& work) const {
  // The context may have been destroyed, and its module with it: then pushing it fails and nothing is left to do.
  unsigned long long id = 0;
  if (context_identity(*driver_, device_.context, &id) != cuda::kSuccess || id != device_.id) return;
  if (driver_->context_push(device_.context) != cuda::kSuccess) return;
  work();
  cuda::Context context = nullptr;
  driver_->context_pop(&context);
}

bool Module::may_unload() const {
  if (!marks_) return false;
  bool may = true;  // where the context is gone
  in_context([&] { may = marks_->are_done(); });
  return may;
}

Module::~Module() {
  if (module_ == nullptr) return;
  in_context([&] {
    // A thread that unloads modules need not be one that captures; a module that a graph needs is not unloaded.
    const RelaxedCapture relaxed(*driver_);
    if (marks_) marks_->destroy_events();
    driver_->module_unload(module_);
  });
}

}  // namespace hstujit
