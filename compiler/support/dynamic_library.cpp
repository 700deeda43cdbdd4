#include "compiler/support/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>
#include <utility>

#include "compiler/support/elf.h"
#include "compiler/support/files.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

// dlerror is per thread: asking at once gives this thread's reason.
std::string loader_reason() {
  const char* reason = ::dlerror();
  return reason != nullptr ? reason : "no reason given";
}

std::string path_of(void* handle) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return {};
  return plain_path(map->l_name);
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::string& what, const std::vector<std::string>& candidates,
                                            Code code, Keep keep) {
  std::string tried;
  for (const std::string& candidate : candidates) {
    // A path: the loader would wait for a pipe's writer, and for what a file of /proc has yet to say, and the process
    // would end where it reads behind the end of a file that was cut off.
    if (candidate.find('/') != std::string::npos) {
      const Status status = check_shared_library(candidate);
      if (status.code() == Code::kIo) {
        tried += fmt::format("{}{} ({})", tried.empty() ? "" : "; ", printable(candidate), status.message());
        continue;
      }
    }
    const int flags = RTLD_NOW | RTLD_LOCAL | (keep == Keep::kForever ? RTLD_NODELETE : 0);
    if (void* handle = ::dlopen(candidate.c_str(), flags)) {
      DynamicLibrary library;
      library.handle_ = handle;
      library.code_ = code;
      library.what_ = what;
      library.name_ = candidate;
      library.path_ = path_of(handle);
      return library;
    }
    tried += fmt::format("{}{} ({})", tried.empty() ? "" : "; ", printable(candidate), printable(loader_reason()));
  }
  return Status(code, fmt::format("{} was not found; tried: {}", what, tried.empty() ? "nothing" : tried));
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      code_(other.code_),
      what_(std::move(other.what_)),
      name_(std::move(other.name_)),
      path_(std::move(other.path_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  if (this != &other) {
    close();
    handle_ = std::exchange(other.handle_, nullptr);
    code_ = other.code_;
    what_ = std::move(other.what_);
    name_ = std::move(other.name_);
    path_ = std::move(other.path_);
  }
  return *this;
}

DynamicLibrary::~DynamicLibrary() { close(); }

void DynamicLibrary::close() {
  if (handle_ != nullptr) ::dlclose(handle_);
  handle_ = nullptr;
}

void* DynamicLibrary::find_or_null(const std::string& symbol) const { return ::dlsym(handle_, symbol.c_str()); }

Result<void*> DynamicLibrary::find(const std::string& symbol) const {
  if (void* address = find_or_null(symbol)) return address;
  return Status(code_, fmt::format("{} ({}) has no function {}: {}", what_, path_.empty() ? name_ : path_, symbol,
                                   loader_reason()));
}

std::string folder_of_code(const void* address) {
  Dl_info info;
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const auto path = std::filesystem::absolute(info.dli_fname, error);
  return error ? std::string() : plain_path(path.parent_path());
}

}  // namespace hstujit
