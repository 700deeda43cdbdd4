// libhstujit_operations.so as the runtime sees it: opened by the first call that works on whole configs or on the
// cache, or that tunes.
//
// The library has engines of its own. One is made with the settings of the caller's engine, and both meet in the caches
// on disk.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "compiler/support/dynamic_library.h"
#include "compiler/support/env.h"
#include "compiler/support/log.h"
#include "hstujit/hstujit.h"

namespace hstujit {

class OperationsLibrary {
 public:
  // HSTUJIT_OPERATIONS_LIBRARY, else libhstujit_operations.so beside this library, then where the loader looks.
  // kNoCompiler when there is none, or when its ABI or its generator is another one.
  static Result<OperationsLibrary> open(const Environment& environment);

  // Calls the function `name` of operations/api/operations_api.h, which returns a status.
  template <typename Function, typename... Arguments>
  Status call(const std::string& name, Arguments... arguments) const {
    HSTUJIT_ASSIGN_OR_RETURN(Function* const called, library_.function<Function>(name));
    return status_of(called(arguments...));
  }

  // One that returns something else.
  template <typename Function>
  Result<Function*> function(const std::string& name) const {
    return library_.function<Function>(name);
  }

 private:
  explicit OperationsLibrary(DynamicLibrary library) : library_(std::move(library)) {}
  // A failure with the library's sentence.
  Status status_of(hstujit_status status) const;

  DynamicLibrary library_;
  const char* (*error_)() = nullptr;
};

// Settings of an engine of the library: those of the caller's engine.
struct OperationsSettings {
  Environment environment = Environment::of_values({});
  std::optional<std::string> cache_dir;
  std::optional<std::string> cache_path;
  hstujit_miss_policy on_miss = HSTUJIT_ON_MISS_DEFAULT;
  bool deterministic = false;
  bool diagnose = false;
  Log::Sink log;  // empty: HSTUJIT_LOG decides
};

// An engine in the library.
class OperationsContext {
 public:
  // Fails as OperationsLibrary::open and hstujit_context_create do.
  static Result<std::shared_ptr<const OperationsContext>> create(OperationsSettings settings);
  OperationsContext(const OperationsContext&) = delete;
  OperationsContext& operator=(const OperationsContext&) = delete;
  ~OperationsContext();

  const OperationsLibrary& library() const { return library_; }

  // Calls the function `name`, whose first argument is the context.
  template <typename Function, typename... Arguments>
  Status call(const std::string& name, Arguments... arguments) const {
    return library_.call<Function>(name, context_, arguments...);
  }

 private:
  OperationsContext(OperationsLibrary library, OperationsSettings settings)
      : library_(std::move(library)), settings_(std::move(settings)) {}

  OperationsLibrary library_;
  const OperationsSettings settings_;  // at one address, since the library's engine calls its log
  void (*destroy_)(hstujit_context*) = nullptr;
  hstujit_context* context_ = nullptr;
};

using OperationsPtr = std::shared_ptr<const OperationsContext>;

}  // namespace hstujit
