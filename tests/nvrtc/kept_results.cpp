#include "tests/nvrtc/kept_results.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "compiler/support/hash.h"
#include "tests/paths.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxCubins = 8192;  // all tests together compile some 2,200

}  // namespace

KeptFiles kept_cubins() { return KeptFiles(kept_path(), kMaxCubins); }

std::string compile_key(const Nvrtc& nvrtc, const CompileInput& input, const std::vector<std::string>& options) {
  KeyHasher key("hstujit-test-compile-1");
  key.add("nvrtc", nvrtc.version()).add("library", nvrtc.path());
  std::error_code ignored;
  const fs::path file = fs::canonical(nvrtc.path(), ignored);
  if (!file.empty()) {
    key.add("bytes", static_cast<int64_t>(fs::file_size(file, ignored)));
    key.add("changed", static_cast<int64_t>(fs::last_write_time(file, ignored).time_since_epoch().count()));
  }
  key.add("source", input.source).add("file", input.file_name).add("entry", input.entry);
  for (const std::string& other : input.others) key.add("other", other);
  for (const std::string& option : options) key.add("option", option);
  return key.finish();
}

Result<CompileOutput> compile_once(const KeptFiles& results, const Nvrtc& nvrtc, const CompileInput& input,
                                   std::string* log) {
  const std::string key = compile_key(nvrtc, input, nvrtc_options(input));
  const std::optional<std::string> kept = results.find(key);
  const size_t end = kept ? kept->find('\n') : std::string::npos;
  if (end == std::string::npos) {
    auto output = nvrtc.compile(input, log);
    if (output.ok()) results.keep(key, fmt::format("{}\n{}{}", output->log.size(), output->log, output->cubin));
    return output;
  }
  const size_t log_size = std::stoul(*kept);
  CompileOutput output;
  output.log = kept->substr(end + 1, log_size);
  output.cubin = kept->substr(end + 1 + log_size);
  output.nvrtc_version = nvrtc.version();
  if (log != nullptr) *log = output.log;
  HSTUJIT_RETURN_IF_ERROR(read_figures(input, output));
  return output;
}

}  // namespace hstujit
