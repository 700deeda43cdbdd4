#include "compiler/support/env.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "compiler/support/numbers.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

constexpr std::string_view kPrefix = "HSTUJIT_";
// Of a flag: the first of each is what the documentation uses.
constexpr std::string_view kYes[] = {"1", "true", "on", "yes"};
constexpr std::string_view kNo[] = {"0", "false", "off", "no"};

}  // namespace

const std::vector<EnvVariable>& environment_variables() {
  using enum EnvKind;
  static const auto& table = *new std::vector<EnvVariable>{
      {Env::kCacheDir, kPath, "HSTUJIT_CACHE_DIR", "", "",
       "Where compiled kernels and tuning results are kept. Unset: `$XDG_CACHE_HOME/hstujit`, else "
       "`$HOME/.cache/hstujit`, of those that are absolute paths."},
      {Env::kCachePath, kPaths, "HSTUJIT_CACHE_PATH", "", "",
       "Read-only caches that are searched after the cache directory, in order."},
      {Env::kCacheMaxBytes, kSize, "HSTUJIT_CACHE_MAX_BYTES", "4G", "",
       "Size that the cache directory is kept below, least recently used entries first to go; `0` means unbounded "
       "(in `cache prune --max-bytes` it removes all kernels)."},
      {Env::kTrustCache, kFlag, "HSTUJIT_TRUST_CACHE", "0", "",
       "`1`: caches are used whoever owns their folders and files, and whoever may write them, as in a directory that "
       "a "
       "team shares. Otherwise what belongs to somebody who is neither root nor this user, or what anybody may write, "
       "is passed over (`SECURITY.md`)."},
      {Env::kRemoteCache, kText, "HSTUJIT_REMOTE_CACHE", "", "",
       "URL of a cache that machines share over HTTP, `http[s]://[user:password@]host[:port][/path]`. It is asked "
       "after "
       "every directory, when a kernel is prepared and never when one is launched; what it gives is checked and kept "
       "in "
       "the cache directory. One that is dead or wrong is a miss."},
      {Env::kRemoteUpload, kFlag, "HSTUJIT_REMOTE_UPLOAD", "1", "",
       "Whether new kernels and tuning results are sent to the remote cache, in the background."},
      {Env::kOnMiss, kChoice, "HSTUJIT_ON_MISS", "heuristic", "heuristic|tune|fail",
       "What happens when no cache holds a kernel: `heuristic` compiles the expected best configuration once, `tune` "
       "measures candidates first, `fail` compiles nothing and returns an error. `tune` also measures where a cache "
       "holds the heuristic's kernel and no tuning record has a winner; `fail` launches such a kernel."},
      {Env::kLengthMode, kChoice, "HSTUJIT_LENGTH_MODE", "pow2", "pow2|static|fine|exact",
       "How `max_seq_len` is rounded when tuning results are stored and looked up."},
      {Env::kDeterministic, kFlag, "HSTUJIT_DETERMINISTIC", "0", "",
       "`1`: only kernels whose results are bitwise equal run after run, also where a config's `tuning.deterministic` "
       "does not ask for them."},
      {Env::kRecord, kPath, "HSTUJIT_RECORD", "", "",
       "File to which a line is appended for each key that a process prepared untuned (also where a cache held the "
       "heuristic's kernel) or tuned but without a cubin; `hstujit prewarm` compiles for others and records nothing; "
       "any number of processes may share it, and it takes no more lines at 128 MiB. `hstujit tune --from` tunes the "
       "former and compiles the latter, 10,000 keys at most."},
      {Env::kLog, kChoices, "HSTUJIT_LOG", "", "compile|cache|dispatch|tune",
       "Categories of events that are written to standard error, one line each; `all` means all of them."},
      {Env::kDump, kChoices, "HSTUJIT_DUMP", "", "ir|src|log",
       "Files that are kept next to each cache entry when it is compiled: `ir` is the MLIR text, `<digest>.mlir`; "
       "`src` the "
       "CUDA source, `<digest>.cu`; `log` what the compiler said, `<digest>.log`; `all` means all of it."},
      {Env::kCheck, kFlag, "HSTUJIT_CHECK", "0", "",
       "Check num_targets, num_contexts and the offsets of sequences on the device before each launch. It waits for "
       "the stream: for finding mistakes."},
      {Env::kFrozen, kPath, "HSTUJIT_FROZEN", "", "",
       "File of `hstujit freeze`. Kernels are those that it lists, whatever tuning records and the cost model say. A "
       "key "
       "that it lacks is an error. So all processes with the file launch the same kernels. Nothing is timed."},
      {Env::kOverride, kText, "HSTUJIT_OVERRIDE", "", "",
       "JSON object of config fields that replace those of every chosen config, for debugging (docs/tuning.md lists "
       "the fields and their values; any other is an error): "
       "`{\"skeleton\": \"attention/sm80_forward\", ...}` tries one config, `{\"lanes_arrive\": true}` suits "
       "racecheck."},
      {Env::kLineinfo, kFlag, "HSTUJIT_LINEINFO", "0", "",
       "Compile with line tables, so that a profiler shows the generated source. It is part of the cache key."},
      {Env::kNvrtc, kPath, "HSTUJIT_NVRTC", "", "",
       "libnvrtc 12.4 or newer: a folder that holds it, or a file, by its path or by a name that the loader finds. "
       "Unset: the loader's path, the CUDA toolkit, the "
       "PyPI wheel."},
      {Env::kCompileJobs, kNumber, "HSTUJIT_COMPILE_JOBS", "0", "1024",
       "How many compiles of a process may be under way at once, those of candidates in worker processes included; "
       "the others wait, in the order that they came in. `0`: one per core, 16 at most."},
      {Env::kCudaDriver, kPath, "HSTUJIT_CUDA_DRIVER", "", "",
       "The driver library. Unset: `libcuda.so.1` of the loader's path."},
      {Env::kCompilerLibrary, kPath, "HSTUJIT_COMPILER_LIBRARY", "", "",
       "libhstujit_compiler.so. Unset: the one next to libhstujit.so, then the loader's path."},
      {Env::kHostLibrary, kPath, "HSTUJIT_HOST_LIBRARY", "", "",
       "libhstujit_host.so. Unset: the one next to libhstujit.so, then the loader's path."},
      {Env::kHostCache, kPath, "HSTUJIT_HOST_CACHE", "", "",
       "Folder where the host backend keeps the machine code of its kernels between processes, 30 KB each and 2,048 of "
       "them. It is used where nobody but root and this user may write it, whatever `HSTUJIT_TRUST_CACHE` says. Unset: "
       "`host` in the cache directory."},
      {Env::kOperationsLibrary, kPath, "HSTUJIT_OPERATIONS_LIBRARY", "", "",
       "libhstujit_operations.so. Unset: the one next to libhstujit.so, then the loader's path."},
      {Env::kBundleLibrary, kPath, "HSTUJIT_BUNDLE_LIBRARY", "", "",
       "libhstujit_bundle.so, which decompresses bundles. Unset: the one next to libhstujit.so, then the loader's "
       "path."},
      {Env::kWorker, kPath, "HSTUJIT_WORKER", "", "",
       "The executable in which tuning compiles and runs candidates, so that a faulty compiler or kernel ends it and "
       "not "
       "the caller. Unset: hstujit-worker of the same installation. `none`: both happen in the calling process."},
  };
  return table;
}

const EnvVariable& environment_variable(Env id) { return environment_variables()[static_cast<size_t>(id)]; }

namespace {

// One item of a list, in lines of at most 120 columns.
std::string list_item(const std::string& text) {
  constexpr size_t kColumns = 120;
  std::string item = "-";
  size_t column = item.size();
  for (const std::string& word : split(text, ' ')) {
    if (column + 1 + word.size() > kColumns) {
      item += "\n ";
      column = 1;
    }
    item += " " + word;
    column += 1 + word.size();
  }
  return item + "\n";
}

}  // namespace

std::string environment_page() {
  std::string page =
      "# Environment variables\n\n"
      "Written by `make docs` from the table in compiler/support/env.cpp; a test keeps the two equal.\n"
      "An empty variable counts as unset. What an option of the API says wins over the environment.\n"
      "Creating a context reports all invalid values.\n";
  page += fmt::format("Where `{}` or `{}` is asked for, `{}` and `{}` are taken, too.\n\n", kNo[0], kYes[0],
                      fmt::join(kNo + 1, std::end(kNo), "`, `"), fmt::join(kYes + 1, std::end(kYes), "`, `"));
  for (const EnvVariable& variable : environment_variables()) {
    std::string values;
    switch (variable.kind) {
      case EnvKind::kText:
        values = "text";
        break;
      case EnvKind::kPath:
        values = "path";
        break;
      case EnvKind::kPaths:
        values = "paths, separated by `:`";
        break;
      case EnvKind::kFlag:
        values = fmt::format("`{}` or `{}`", kNo[0], kYes[0]);
        break;
      case EnvKind::kNumber:
        values = fmt::format("whole number up to {}", variable.allowed);
        break;
      case EnvKind::kSize:
        values = "bytes, such as `512M`: `K`, `M`, `G` and `T` are powers of 1024";
        break;
      case EnvKind::kChoice:
        values = fmt::format("one of `{}`", fmt::join(split(variable.allowed, '|'), "`, `"));
        break;
      case EnvKind::kChoices:
        values = fmt::format("any of `{}`, separated by commas", fmt::join(split(variable.allowed, '|'), "`, `"));
        break;
    }
    const std::string fallback = variable.fallback.empty() ? "" : fmt::format("; default `{}`", variable.fallback);
    page += list_item(fmt::format("**`{}`** ({}{}). {}", variable.name, values, fallback, variable.doc));
  }
  return page;
}

Environment Environment::of_process() {
  std::map<std::string, std::string> values;
  const auto take = [&](std::string_view name) {
    const std::string key(name);
    if (const char* value = std::getenv(key.c_str())) values[key] = value;
  };
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(kPrefix)) take(text.substr(0, text.find('=')));
  }
  take("HOME");
  take("XDG_CACHE_HOME");
  return Environment(std::move(values));
}

Environment Environment::of_values(std::map<std::string, std::string> values) { return Environment(std::move(values)); }

std::string Environment::raw(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  return it == values_.end() ? std::string() : it->second;
}

bool Environment::is_set(Env id) const { return !raw(environment_variable(id).name).empty(); }

std::string Environment::text(Env id) const {
  const EnvVariable& variable = environment_variable(id);
  const std::string value = raw(variable.name);
  return value.empty() ? std::string(variable.fallback) : value;
}

Result<bool> Environment::flag(Env id) const {
  const std::string value = text(id);
  if (std::find(std::begin(kYes), std::end(kYes), value) != std::end(kYes)) return true;
  if (std::find(std::begin(kNo), std::end(kNo), value) != std::end(kNo)) return false;
  const std::string_view meant = closest(value, {"false", "off", "no", "true", "on", "yes"});
  return Status(Code::kInvalidArgument,
                fmt::format("{} is {}{}; allowed: {} or {}", environment_variable(id).name, quote(value),
                            did_you_mean(meant), fmt::join(kNo, ", "), fmt::join(kYes, ", ")));
}

Result<int64_t> Environment::number(Env id) const {
  const EnvVariable& variable = environment_variable(id);
  const std::string value = text(id);
  const std::optional<uint64_t> number = whole_number(value);
  if (number && *number <= *whole_number(variable.allowed)) return static_cast<int64_t>(*number);
  return Status(Code::kInvalidArgument, fmt::format("{} is {}; allowed: a whole number from 0 to {}", variable.name,
                                                    quote(value), variable.allowed));
}

Result<int64_t> Environment::size(Env id) const {
  const std::string value = text(id);
  if (const std::optional<int64_t> bytes = whole_size(value)) return *bytes;
  return Status(Code::kInvalidArgument,
                fmt::format("{} is {}; allowed: {}", environment_variable(id).name, quote(value), kSizeAllowed));
}

namespace {

std::string meant(const std::string& value, const std::vector<std::string>& allowed) {
  return did_you_mean(closest(value, {allowed.begin(), allowed.end()}));
}

}  // namespace

Result<std::string> Environment::choice(Env id) const {
  const EnvVariable& variable = environment_variable(id);
  const std::string value = text(id);
  const auto allowed = split(variable.allowed, '|');
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
  return Status(Code::kInvalidArgument, fmt::format("{} is {}{}; allowed: {}", variable.name, quote(value),
                                                    meant(value, allowed), fmt::join(allowed, ", ")));
}

Result<std::vector<std::string>> Environment::choices(Env id) const {
  const EnvVariable& variable = environment_variable(id);
  const auto allowed = split(variable.allowed, '|');
  std::vector<std::string> chosen;
  bool all = false;
  for (const std::string& part : split(text(id), ',')) {
    if (part.empty()) continue;
    if (part == "all") {
      all = true;
      continue;
    }
    if (std::find(allowed.begin(), allowed.end(), part) == allowed.end()) {
      const auto words = split(fmt::format("{}|all", variable.allowed), '|');
      return Status(Code::kInvalidArgument, fmt::format("{} contains {}{}; allowed: {}", variable.name, quote(part),
                                                        meant(part, words), fmt::join(words, ", ")));
    }
    chosen.push_back(part);
  }
  return all ? allowed : chosen;
}

std::vector<std::string> Environment::paths(Env id) const {
  auto parts = split(text(id), ':');
  std::erase(parts, "");
  return parts;
}

std::vector<std::string> Environment::unknown() const {
  const std::vector<EnvVariable>& table = environment_variables();
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) {
    const bool known =
        std::any_of(table.begin(), table.end(), [&](const auto& variable) { return variable.name == name; });
    if (name.starts_with(kPrefix) && !value.empty() && !known) names.push_back(name);
  }
  return names;
}

Result<std::string> Environment::cache_directory() const {
  if (is_set(Env::kCacheDir)) return text(Env::kCacheDir);
  // A relative path is none, by the XDG Base Directory Specification: each process would have a cache of its own.
  if (const std::string base = raw("XDG_CACHE_HOME"); base.starts_with('/')) return base + "/hstujit";
  if (const std::string home = raw("HOME"); home.starts_with('/')) return home + "/.cache/hstujit";
  return Status(Code::kIo,
                "there is no place for the cache: none of HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
}

}  // namespace hstujit
