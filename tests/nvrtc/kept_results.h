// Results of long computations that tests keep between runs, in files named by the digest of what they depend on.
//
// The folder is HSTUJIT_TEST_CACHE, else hstujit-tests in the user's cache folder; an empty HSTUJIT_TEST_CACHE keeps
// nothing. Trouble with a file is a miss. Entries that no test has read for 30 days are removed.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/nvrtc/nvrtc.h"

namespace hstujit {

class KeptResults {
 public:
  KeptResults();  // over the folder that the environment names
  explicit KeptResults(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `key` is a hexadecimal digest.
  std::optional<std::string> find(const std::string& key) const;
  void keep(const std::string& key, const std::string& value) const;
  // Removes entries whose last use is longer ago.
  void remove_unread(std::chrono::hours age) const;

 private:
  std::filesystem::path folder_;  // empty: nothing is kept
};

// All that compiling depends on: the whole source, the names in it, each option, and the compiler by version and file.
std::string compile_key(const Nvrtc& nvrtc, const CompileInput& input, const std::vector<std::string>& options);

// The same as nvrtc.compile(input, log). The compiler's log and the cubin come from `results` where they are kept; the
// resources and rejects are read from them anew. A failure is not kept.
Result<CompileOutput> compile_once(const KeptResults& results, const Nvrtc& nvrtc, const CompileInput& input,
                                   std::string* log = nullptr);

}  // namespace hstujit
