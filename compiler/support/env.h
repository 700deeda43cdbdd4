// Every environment variable of the project, declared once: name, kind, default, allowed values, documentation.
//
// docs/environment.md is rendered from the table. An Environment is a value that is read once and passed down, so that
// tests give their own and nothing depends on when a variable changes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/support/status.h"

namespace hstujit {

// In the order of the table and of the documentation.
enum class Env {
  kCacheDir,
  kCachePath,
  kCacheMaxBytes,
  kTrustCache,
  kRemoteCache,
  kRemoteUpload,
  kOnMiss,
  kLengthMode,
  kDeterministic,
  kRecord,
  kLog,
  kDump,
  kCheck,
  kFrozen,
  kOverride,
  kLineinfo,
  kNvrtc,
  kCompileJobs,
  kCudaDriver,
  kCompilerLibrary,
  kHostLibrary,
  kHostCache,
  kOperationsLibrary,
  kBundleLibrary,
  kWorker,
};

enum class EnvKind { kText, kPath, kFlag, kNumber, kSize, kChoice, kChoices, kPaths };

struct EnvVariable {
  Env id;
  EnvKind kind;
  std::string_view name;
  std::string_view fallback;  // what an unset or empty variable means; "" when that needs words, which `doc` has
  std::string_view allowed;   // kChoice, kChoices: the values, separated by '|'; kNumber: the largest
  std::string_view doc;
};

const std::vector<EnvVariable>& environment_variables();
const EnvVariable& environment_variable(Env id);

// The page docs/environment.md.
std::string environment_page();

class Environment {
 public:
  // The variables of this process, as they are now: HSTUJIT_*, HOME and XDG_CACHE_HOME.
  static Environment of_process();
  // Only these: names are HSTUJIT_*, HOME and XDG_CACHE_HOME.
  static Environment of_values(std::map<std::string, std::string> values);

  const std::map<std::string, std::string>& values() const { return values_; }

  // The value, else the default. An empty variable counts as unset.
  std::string text(Env id) const;
  bool is_set(Env id) const;

  // kInvalidArgument, with the variable's name, its value and what is allowed, when it cannot be read as that kind.
  Result<bool> flag(Env id) const;                         // 1 0 true false on off yes no
  Result<int64_t> number(Env id) const;                    // kNumber: from 0 to the table's bound
  Result<int64_t> size(Env id) const;                      // kSize: bytes; K, M, G and T are powers of 1024
  Result<std::string> choice(Env id) const;                // kChoice
  Result<std::vector<std::string>> choices(Env id) const;  // kChoices: separated by commas, "all" means all of them
  std::vector<std::string> paths(Env id) const;            // kPaths: separated by ':', empty parts left out

  // Names that begin as the table's do and are not in it: spelt wrong, or of another version. An empty one is left out.
  std::vector<std::string> unknown() const;

  // HSTUJIT_CACHE_DIR, else $XDG_CACHE_HOME/hstujit where that is absolute, else $HOME/.cache/hstujit; kIo when none of
  // them is set.
  Result<std::string> cache_directory() const;

 private:
  explicit Environment(std::map<std::string, std::string> values) : values_(std::move(values)) {}
  std::string raw(std::string_view name) const;
  std::map<std::string, std::string> values_;
};

}  // namespace hstujit
