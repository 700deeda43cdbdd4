#include "tests/fuzz/oracles.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "autotune_cache/files/checked_json.h"
#include "compiler/support/text.h"

namespace hstujit::fuzz {

namespace {

constexpr size_t kLongestLine = 4096;
constexpr int kDeepest = kMaxJsonDepth - 1;  // that values may lie in lists and objects

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

void limit_stack() {
  rlimit limit{};
  ::getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kStack);
  ::setrlimit(RLIMIT_STACK, &limit);
}

void expect(bool holds, std::string_view promise) {
  if (holds) return;
  fmt::print(stderr, "broken promise: {}\n", promise);
  std::abort();
}

void expect_sentence(const Status& status) {
  expect(!status.message().empty(), "a failure has a message");
  for (const std::string& line : split(status.message(), '\n')) {
    expect(!line.empty(), "no line of a message is empty");
    expect(line.size() < kLongestLine, fmt::format("a line of a message is under 4 KB; this one: {}", line));
    expect(std::none_of(line.begin(), line.end(), is_control), fmt::format("no control characters in: {}", line));
    expect(is_utf8(line), fmt::format("a message is UTF-8; this one: {}", line));
  }
}

std::optional<Json> object_of(std::string_view text) {
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  Json json = Json::parse(text, watch, /*allow_exceptions=*/false);
  return !deep && json.is_object() ? std::optional(std::move(json)) : std::nullopt;
}

std::string checked_file(Json object, std::string_view format) {
  object["format"] = format;
  object.erase("checksum");
  return *format_checked_json(std::move(object), std::string::npos);
}

std::string with_header_checksums(std::string tar) {
  constexpr size_t kBlock = 512;
  for (size_t at = 0; at + kBlock <= tar.size() && tar[at] != '\0';) {
    const auto header = tar.begin() + static_cast<std::ptrdiff_t>(at);
    std::fill_n(header + 148, 8, ' ');
    const auto sum = std::accumulate(header, header + kBlock, 0U,
                                     [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
    const std::string digits = fmt::format("{:06o}", sum);
    std::copy(digits.begin(), digits.end(), header + 148);
    header[154] = '\0';
    size_t size = 0;
    std::from_chars(&tar[at + 124], &tar[at + 135], size, 8);
    if (size > tar.size()) break;
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return tar;
}

}  // namespace hstujit::fuzz
