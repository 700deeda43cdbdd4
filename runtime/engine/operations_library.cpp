#include "runtime/engine/operations_library.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "compiler/generator/generator_digest.h"
#include "operations/api/operations_api.h"
#include "runtime/engine/compiler_library.h"

namespace hstujit {

namespace {

constexpr char kOperationsFile[] = "libhstujit_operations.so";

// The log callback of the library's engine: `user` is the sink of the caller's.
void pass_on(void* user, const char* category, const char* line) {
  using enum LogCategory;
  for (const LogCategory each : {kCompile, kCache, kDispatch, kTune}) {
    if (to_string(each) == std::string_view(category)) (*static_cast<const Log::Sink*>(user))(each, line);
  }
}

}  // namespace

Result<OperationsLibrary> OperationsLibrary::open(const Environment& environment) {
  // It has thread-local state: unloading it is not safe.
  HSTUJIT_ASSIGN_OR_RETURN(
      DynamicLibrary found,
      DynamicLibrary::open(library_name("the operations library", environment, Env::kOperationsLibrary),
                           library_candidates(environment, Env::kOperationsLibrary, kOperationsFile), Code::kNoCompiler,
                           DynamicLibrary::Keep::kForever));
  OperationsLibrary library(std::move(found));
  const std::string& name = library.library_.name();
  HSTUJIT_ASSIGN_OR_RETURN(auto* const abi,
                           library.library_.function<decltype(hstujit_operations_abi)>("hstujit_operations_abi"));
  if (const int has = abi(); has != HSTUJIT_OPERATIONS_ABI) {
    return Status(Code::kNoCompiler, fmt::format("the operations library {} has ABI {}; this libhstujit needs ABI {}, "
                                               "install both from one release",
                                               name, has, HSTUJIT_OPERATIONS_ABI));
  }
  HSTUJIT_ASSIGN_OR_RETURN(auto* const generator, library.library_.function<decltype(hstujit_operations_generator)>(
                                                      "hstujit_operations_generator"));
  HSTUJIT_RETURN_IF_ERROR(check_generator(fmt::format("the operations library {}", name), generator()));
  HSTUJIT_ASSIGN_OR_RETURN(library.error_,
                           library.library_.function<decltype(hstujit_operations_error)>("hstujit_operations_error"));
  return library;
}

Status OperationsLibrary::status_of(hstujit_status status) const {
  return status == HSTUJIT_OK ? Status() : Status(static_cast<Code>(status), error_());
}

Result<OperationsPtr> OperationsContext::create(OperationsSettings settings) {
  HSTUJIT_ASSIGN_OR_RETURN(OperationsLibrary library, OperationsLibrary::open(settings.environment));
  const std::shared_ptr<OperationsContext> context(new OperationsContext(std::move(library), std::move(settings)));
  const OperationsSettings& kept = context->settings_;
  auto options = HSTUJIT_INIT(hstujit_context_options);
  if (kept.cache_dir) options.cache_dir = kept.cache_dir->c_str();
  if (kept.cache_path) options.cache_path = kept.cache_path->c_str();
  options.on_miss = kept.on_miss;
  options.deterministic = kept.deterministic ? 1 : 0;
  if (kept.log) {
    options.log = pass_on;
    options.log_user = const_cast<Log::Sink*>(&kept.log);
  }
  std::vector<std::string> variables;
  for (const auto& [name, value] : kept.environment.values()) variables.push_back(fmt::format("{}={}", name, value));
  std::vector<const char*> environment;
  for (const std::string& variable : variables) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  HSTUJIT_ASSIGN_OR_RETURN(context->destroy_, context->library_.function<decltype(hstujit_operations_context_destroy)>(
                                                  "hstujit_operations_context_destroy"));
  HSTUJIT_RETURN_IF_ERROR(context->library_.call<decltype(hstujit_operations_context_create)>(
      "hstujit_operations_context_create", static_cast<const char* const*>(environment.data()),
      static_cast<const hstujit_context_options*>(&options), kept.diagnose ? 1 : 0, &context->context_));
  return OperationsPtr(context);
}

OperationsContext::~OperationsContext() {
  if (context_ != nullptr) destroy_(context_);
}

}  // namespace hstujit
