// Paths of this build, for tests. They are in one object file, so that no other depends on where the clone is.
#pragma once

#include <string>

namespace hstujit {

// `below` begins with "/": source_path("/docs/cli.md"). Without it, the folder of the sources.
std::string source_path(const std::string& below = {});
// The same below the folder of the build.
std::string binary_path(const std::string& below = {});

// The folder where tests keep results of long computations between runs: HSTUJIT_TEST_CACHE, else hstujit-tests in the
// user's cache folder. Empty, as with an empty HSTUJIT_TEST_CACHE, where nothing is kept.
std::string kept_path(const std::string& below = {});

}  // namespace hstujit
