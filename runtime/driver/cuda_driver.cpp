#include "runtime/driver/cuda_driver.h"

#include <fmt/format.h>

#include <string_view>
#include <type_traits>

#include "compiler/support/dynamic_library.h"

namespace hstujit {

namespace {

constexpr char kDefaultLibrary[] = "libcuda.so.1";

// The path inside the source tree, whatever folder the build ran in.
std::string_view source_location(std::string_view file) {
  const size_t position = file.rfind("runtime/");
  return position == std::string_view::npos ? file : file.substr(position);
}

Code code_of(cuda::Error error) {
  switch (error) {
    case cuda::kErrorOutOfMemory:
      return Code::kOutOfMemory;
    case cuda::kErrorNoDevice:
    case cuda::kErrorInvalidDevice:
      return Code::kNoDevice;
    default:
      return Code::kDriverError;
  }
}

}  // namespace

Result<std::shared_ptr<const CudaDriver>> CudaDriver::open(const std::string& path) {
  const std::string what = path.empty() ? "the CUDA driver (HSTUJIT_CUDA_DRIVER may name it)"
                                        : "the CUDA driver that HSTUJIT_CUDA_DRIVER names";
  HSTUJIT_ASSIGN_OR_RETURN(DynamicLibrary library,
                           DynamicLibrary::open(what, {path.empty() ? std::string(kDefaultLibrary) : path},
                                                Code::kNoDriver, DynamicLibrary::Keep::kForever));
  const std::shared_ptr<CudaDriver> driver(new CudaDriver());
  driver->path_ = library.path().empty() ? library.name() : library.path();

  const char* missing = nullptr;
#define HSTUJIT_RESOLVE(member, symbol, parameters)                                             \
  driver->member = library.optional_function<std::remove_pointer_t<decltype(member)>>(#symbol); \
  if (driver->member == nullptr && missing == nullptr) missing = #symbol;
  HSTUJIT_CUDA_FUNCTIONS(HSTUJIT_RESOLVE)
#undef HSTUJIT_RESOLVE
#define HSTUJIT_RESOLVE_OPTIONAL(member, symbol, parameters) \
  driver->member = library.optional_function<std::remove_pointer_t<decltype(member)>>(#symbol);
  HSTUJIT_CUDA_OPTIONAL_FUNCTIONS(HSTUJIT_RESOLVE_OPTIONAL)
#undef HSTUJIT_RESOLVE_OPTIONAL
  if (missing != nullptr) {
    return Status(Code::kNoDriver, fmt::format("{}, {}, lacks the function {}: a driver for CUDA 12 or newer is needed",
                                               what, driver->path_, missing));
  }

  if (const cuda::Error error = driver->init(0); error != cuda::kSuccess) {
    const Code code = error == cuda::kErrorNoDevice ? Code::kNoDevice : Code::kNoDriver;
    return Status(code, fmt::format("{}, {}, cannot be used: cuInit failed with {}", what, driver->path_,
                                    driver->describe(error)));
  }
  HSTUJIT_CUDA_CHECK(*driver, driver_get_version(&driver->version_));
  return std::shared_ptr<const CudaDriver>(driver);
}

std::string CudaDriver::describe(cuda::Error error) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (get_error_name(error, &name) != cuda::kSuccess || name == nullptr) return fmt::format("CUDA error {}", error);
  if (get_error_string(error, &text) != cuda::kSuccess || text == nullptr) return name;
  return fmt::format("{} ({})", name, text);
}

Status CudaDriver::failure(cuda::Error error, const char* expression, const char* file, int line) const {
  return Status(code_of(error),
                fmt::format("{} failed with {} at {}:{}", expression, describe(error), source_location(file), line));
}

}  // namespace hstujit
