// Paths of this build, for tests. They are in one object file, so that no other depends on where the clone is.
#pragma once

#include <string>

namespace hstujit {

// `below` begins with "/": source_path("/docs/cli.md"). Without it, the folder of the sources.
std::string source_path(const std::string& below = {});
// The same below the folder of the build.
std::string binary_path(const std::string& below = {});

}  // namespace hstujit
