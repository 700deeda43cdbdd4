// Golden files: text that a test expects, under tests/golden/. HSTUJIT_UPDATE_GOLDEN=1 writes them anew, and the
// tests that did so fail: read the difference, then run them again without it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/paths.h"

namespace hstujit {

inline std::filesystem::path golden_folder() { return std::filesystem::path(source_path("/tests")) / "golden"; }

inline void expect_golden(const std::string& name, const std::string& actual,
                          const std::filesystem::path& folder = golden_folder()) {
  const std::filesystem::path path = folder / name;
  const char* update = std::getenv("HSTUJIT_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    FAIL() << name << " was written anew; look at the difference and run without HSTUJIT_UPDATE_GOLDEN";
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file.good()) << name << " is missing; run with HSTUJIT_UPDATE_GOLDEN=1 to write it";
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(actual, expected.str()) << name << " differs; run with HSTUJIT_UPDATE_GOLDEN=1 if the change is meant";
}

}  // namespace hstujit
