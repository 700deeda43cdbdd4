#include "tests/paths.h"

namespace hstujit {

std::string source_path(const std::string& below) { return HSTUJIT_SOURCE_DIR + below; }
std::string binary_path(const std::string& below) { return HSTUJIT_BINARY_DIR + below; }

}  // namespace hstujit
