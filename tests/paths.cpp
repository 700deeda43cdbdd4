#include "tests/paths.h"

#include <cstdlib>

namespace hstujit {

std::string source_path(const std::string& below) { return HSTUJIT_SOURCE_DIR + below; }
std::string binary_path(const std::string& below) { return HSTUJIT_BINARY_DIR + below; }

std::string kept_path(const std::string& below) {
  const auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  std::string folder = variable("HSTUJIT_TEST_CACHE");
  if (std::getenv("HSTUJIT_TEST_CACHE") == nullptr) {
    if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
      folder = cache + "/hstujit-tests";
    } else if (const std::string home = variable("HOME"); !home.empty()) {
      folder = home + "/.cache/hstujit-tests";
    }
  }
  return folder.empty() ? folder : folder + below;
}

}  // namespace hstujit
