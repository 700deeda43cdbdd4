#include "tests/nvrtc/kept_results.h"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <system_error>

#include "compiler/support/hash.h"
#include "tests/support/whole_file.h"

namespace hstujit {

namespace {

namespace fs = std::filesystem;

fs::path folder_of_process() {
  if (const char* folder = std::getenv("HSTUJIT_TEST_CACHE"); folder != nullptr) return folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fs::path(cache) / "hstujit-tests";
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? fs::path() : fs::path(home) / ".cache" / "hstujit-tests";
}

constexpr size_t kDigits = 64;  // of a digest
constexpr std::chrono::hours kKept(30 * 24);

}  // namespace

KeptResults::KeptResults() : KeptResults(folder_of_process()) {}

std::optional<std::string> KeptResults::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path path = folder_ / key;
  const auto bytes = whole_file(path);
  if (!bytes.ok() || bytes->size() < kDigits) return std::nullopt;
  std::string value = bytes->substr(kDigits);
  if (sha256_hex(value) != bytes->substr(0, kDigits)) return std::nullopt;
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return value;
}

void KeptResults::keep(const std::string& key, const std::string& value) const {
  if (folder_.empty()) return;
  static std::once_flag removed;
  std::call_once(removed, [&] { remove_unread(kKept); });
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  static_cast<void>(write_file_atomically(folder_ / key, sha256_hex(value) + value));
}

void KeptResults::remove_unread(std::chrono::hours age) const {
  if (folder_.empty()) return;
  std::error_code ignored;
  const auto oldest = fs::file_time_type::clock::now() - age;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored)) {
    std::error_code failed;
    const auto used = entry.last_write_time(failed);
    if (!failed && used < oldest) fs::remove(entry.path(), ignored);
  }
}

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

Result<CompileOutput> compile_once(const KeptResults& results, const Nvrtc& nvrtc, const CompileInput& input,
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
