#include "compiler/support/installed_library.h"

#include <fmt/format.h>

#include <vector>

namespace hstujit {

Result<DynamicLibrary> open_installed_library(const std::string& what, const Environment& environment, Env variable,
                                              const std::string& file) {
  constexpr auto kKeep = DynamicLibrary::Keep::kForever;
  if (environment.is_set(variable)) {
    return DynamicLibrary::open(fmt::format("{} that {} names", what, environment_variable(variable).name),
                                {environment.text(variable)}, Code::kNoCompiler, kKeep);
  }
  std::vector<std::string> candidates;
  const std::string folder = folder_of_code(reinterpret_cast<const void*>(&open_installed_library));
  if (!folder.empty()) candidates.push_back(folder + "/" + file);
  candidates.push_back(file);
  return DynamicLibrary::open(what, candidates, Code::kNoCompiler, kKeep);
}

Status check_abi(const std::string& what, const DynamicLibrary& library, int has, int needed) {
  if (has == needed) return {};
  return Status(Code::kNoCompiler, fmt::format("{} {} has ABI {}; this libhstujit needs ABI {}, install both from one "
                                               "release",
                                               what, library.name(), has, needed));
}

}  // namespace hstujit
