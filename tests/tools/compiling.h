// Commands that compile, over a cache of their own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/tools/program.h"

namespace hstujit {

class Compiling : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC here";
  }

  Outcome prewarm(const std::string& cache, std::vector<std::string> more = {}, bool unprivileged = false) const {
    std::vector<std::string> arguments = {"prewarm", "--config", config_, "--arch", "sm_90a", "--cache-dir", cache};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hstujit_tool(arguments, {}, unprivileged);
  }

  // The entry whose name ends in `extension`.
  std::filesystem::path entry(const std::string& extension) const {
    for (const auto& file : std::filesystem::recursive_directory_iterator(scratch_.cache())) {
      if (file.path().extension() == extension) return file.path();
    }
    return {};
  }

  Scratch scratch_;
  std::string config_ = scratch_.config();
};

}  // namespace hstujit
