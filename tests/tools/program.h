// Runs the program as a user does and keeps what it printed.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/support/files.h"

namespace hstujit {

struct Outcome {
  int code = -1;  // exit code; 128 + the signal that ended it
  std::string out;
  std::string err;
  double seconds = 0;

  nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
  std::string last_line() const;  // of `out`
};

using Variables = std::map<std::string, std::string>;

// `variables` come on top of the environment, without the HSTUJIT_* of whoever runs the tests; an empty value removes.
Outcome run_program(const std::vector<std::string>& command, const Variables& variables = {},
                    bool unprivileged = false);

// build/bin/hstujit with these arguments.
Outcome hstujit_tool(std::vector<std::string> arguments, const Variables& variables = {}, bool unprivileged = false);

// A folder for one test, with a cache directory and configs in it.
class Scratch {
 public:
  Scratch();
  std::filesystem::path path() const { return folder_.path(); }
  std::string cache() const { return (path() / "cache").string(); }
  std::string file(const std::string& name, const std::string& text) const;

  // A config with one small attention; `fields` are added to it.
  std::string config(const std::string& fields = "") const;

 private:
  TempDir folder_;
};

// Where a real libnvrtc is looked for by tests that compile; they skip without one.
bool has_nvrtc();

}  // namespace hstujit
