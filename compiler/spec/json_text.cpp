#include "compiler/spec/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "compiler/support/text.h"

namespace hstujit {

namespace {

// "line:column" of a byte, both from 1.
std::string position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return fmt::format("{}:{}", line, column);
}

// The library's message without its own prefix and position: "unexpected '}'; expected string literal".
std::string reason(std::string_view what) {
  const size_t details = what.find(" - ");
  return std::string(details == std::string_view::npos ? what : what.substr(details + 3));
}

}  // namespace

Result<Json> parse_json_text(std::string_view text, const std::string& origin) {
  std::vector<std::set<std::string>> names;  // per open object
  std::string repeated;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && repeated.empty()) {
      const std::string name = parsed.get<std::string>();
      if (!names.back().insert(name).second) repeated = name;
    }
    return true;
  };
  try {
    Json json = Json::parse(text, watch, /*allow_exceptions=*/true, /*ignore_comments=*/true);
    if (!repeated.empty()) {
      return Status(Code::kInvalidConfig, fmt::format("{}: the name {} stands twice in one object; each may stand once",
                                                      origin, quote(repeated)));
    }
    return json;
  } catch (const Json::parse_error& error) {
    // error.byte counts from 1 and names the last byte read.
    const size_t byte = error.byte == 0 ? 0 : error.byte - 1;
    return Status(Code::kInvalidConfig,
                  fmt::format("{}:{}: malformed JSON: {}", origin, position(text, byte), reason(error.what())));
  }
}

std::string brief_json(const Json& json) {
  constexpr size_t kLongest = 60;
  std::string text = json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace hstujit
