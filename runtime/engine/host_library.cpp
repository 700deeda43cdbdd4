#include "runtime/engine/host_library.h"

#include <fmt/format.h>

#include <array>

#include "compiler/generator/generator_digest.h"
#include "compiler/host/host_api.h"
#include "compiler/support/c_boundary.h"
#include "compiler/support/installed_library.h"
#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "runtime/engine/compiler_library.h"

namespace hstujit {

namespace {

constexpr char kHostFile[] = "libhstujit_host.so";

// LLVM ends a process whose memory runs out. What it may need is three times what it was seen to take: 80 MiB of
// address space for the library, and 20 for the largest kernel.
constexpr size_t kHostLibraryBytes = size_t{128} << 20, kHostKernelBytes = size_t{64} << 20;

struct HostFunctions {
  explicit HostFunctions(DynamicLibrary opened) : library(std::move(opened)) {}

  DynamicLibrary library;
  decltype(&hstujit_host_create) create = nullptr;
  decltype(&hstujit_host_launch) launch = nullptr;
  decltype(&hstujit_host_destroy) destroy = nullptr;
};

class LibraryKernel final : public HostKernel {
 public:
  LibraryKernel(std::shared_ptr<const HostFunctions> functions, void* kernel)
      : functions_(std::move(functions)), kernel_(kernel) {}
  ~LibraryKernel() override { functions_->destroy(kernel_); }

  Status launch(const Signature& signature, const hstujit_value* values) const override {
    const size_t count = signature.size();
    std::vector<HstujitHostValue> converted(count);
    std::vector<std::array<int64_t, kMaxRank>> strides(count);
    for (size_t i = 0; i < count; ++i) {
      HstujitHostValue& value = converted[i];
      if (signature[i].kind == ArgumentKind::kFloat) value.real = values[i].real;
      if (signature[i].kind == ArgumentKind::kInt) value.integer = values[i].integer;
      if (signature[i].kind != ArgumentKind::kTensor) continue;
      const DLTensor& tensor = *values[i].tensor;
      for (int d = 0; d < tensor.ndim; ++d) strides[i][d] = tensor_stride(tensor, d);
      value.data = tensor_data(tensor);
      value.shape = tensor.shape;
      value.strides = strides[i].data();
      value.rank = tensor.ndim;
    }
    char error[kBoundaryErrorBytes] = {};
    const int code = functions_->launch(kernel_, converted.data(), count, error, sizeof(error));
    if (code == static_cast<int>(Code::kOk)) return {};
    return Status(code_from(code), error[0] == 0 ? "the host backend failed and gave no reason" : error);
  }

 private:
  std::shared_ptr<const HostFunctions> functions_;
  void* kernel_;
};

class HostLibrary final : public HostBackend {
 public:
  HostLibrary(std::shared_ptr<const HostFunctions> functions, std::string objects)
      : functions_(std::move(functions)), objects_(std::move(objects)) {}

  Result<HostKernelPtr> create(const OpSpec& spec, Direction direction) const override {
    HSTUJIT_RETURN_IF_ERROR(check_memory_left(kHostKernelBytes, "the host backend"));
    const nlohmann::ordered_json request = {
        {"spec", spec.to_json()}, {"direction", to_string(direction)}, {"threads", 0}, {"objects", objects_}};
    char error[kBoundaryErrorBytes] = {};
    void* const kernel = functions_->create(dump_json(request).c_str(), error, sizeof(error));
    if (kernel == nullptr) {
      return Status(Code::kCompileFailed,
                    error[0] == 0 ? fmt::format("the host backend refused {} and gave no reason", spec.op()) : error);
    }
    return HostKernelPtr(std::make_shared<LibraryKernel>(functions_, kernel));
  }

  std::string path() const override {
    return functions_->library.path().empty() ? functions_->library.name() : functions_->library.path();
  }

 private:
  std::shared_ptr<const HostFunctions> functions_;
  std::string objects_;
};

}  // namespace

Result<HostBackendPtr> open_host_library(const Environment& environment, std::string objects) {
  HSTUJIT_RETURN_IF_ERROR(check_memory_left(kHostLibraryBytes, "the host backend"));
  HSTUJIT_ASSIGN_OR_RETURN(DynamicLibrary library,
                           open_installed_library("the host backend", environment, Env::kHostLibrary, kHostFile));
  const auto functions = std::make_shared<HostFunctions>(std::move(library));
  HSTUJIT_ASSIGN_OR_RETURN(auto* abi, functions->library.function<decltype(hstujit_host_abi)>("hstujit_host_abi"));
  HSTUJIT_RETURN_IF_ERROR(check_abi("the host backend", functions->library, abi(), HSTUJIT_HOST_ABI));
  HSTUJIT_ASSIGN_OR_RETURN(auto* generator,
                           functions->library.function<decltype(hstujit_host_generator)>("hstujit_host_generator"));
  HSTUJIT_RETURN_IF_ERROR(check_generator(fmt::format("the host backend {}", functions->library.name()), generator()));
  HSTUJIT_ASSIGN_OR_RETURN(functions->create,
                           functions->library.function<decltype(hstujit_host_create)>("hstujit_host_create"));
  HSTUJIT_ASSIGN_OR_RETURN(functions->launch,
                           functions->library.function<decltype(hstujit_host_launch)>("hstujit_host_launch"));
  HSTUJIT_ASSIGN_OR_RETURN(functions->destroy,
                           functions->library.function<decltype(hstujit_host_destroy)>("hstujit_host_destroy"));
  return HostBackendPtr(std::make_shared<HostLibrary>(functions, std::move(objects)));
}

}  // namespace hstujit
