#include "compiler/spec/lengths_file.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>

#include "compiler/spec/limits.h"
#include "compiler/support/files.h"
#include "compiler/support/memory.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

Result<SharedIntegers> parse_lengths_text(std::string_view text, const std::filesystem::path& path) {
  std::vector<int64_t> lengths;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end_of_line = text.find('\n');
    std::string_view line = text.substr(0, end_of_line);
    text.remove_prefix(end_of_line == std::string_view::npos ? text.size() : end_of_line + 1);
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
    const char* const end = line.data() + line.size();
    int64_t length = -1;
    const auto [rest, error] = std::from_chars(line.data(), end, length);
    if (error != std::errc() || rest != end || length < 0 || length > kMaxSeqLen) {
      return Status(Code::kInvalidConfig, fmt::format("{}:{}: the line is no length; allowed: an integer from 0 to {}",
                                                      path.string(), number, kMaxSeqLen));
    }
    lengths.push_back(length);
    if (lengths.size() > static_cast<size_t>(kMaxSeqLen)) {
      return Status(Code::kInvalidConfig,
                    fmt::format("{} has more than {} lengths, the most that there may be", path.string(), kMaxSeqLen));
    }
  }
  if (lengths.empty()) {
    return Status(Code::kInvalidConfig, fmt::format("{} holds no lengths; allowed: one integer a line", path.string()));
  }
  return SharedIntegers(std::move(lengths));
}

}  // namespace

Result<SharedIntegers> read_lengths_file(const std::filesystem::path& path) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxLengthsBytes));
  return within_memory(fmt::format("the lengths of {}", quote(path.native())),
                       [&] { return parse_lengths_text(text, path); });
}

}  // namespace hstujit
