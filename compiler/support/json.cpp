#include "compiler/support/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <set>
#include <vector>

#include "compiler/support/memory.h"
#include "compiler/support/private_json.h"
#include "compiler/support/text.h"

namespace hstujit {
namespace {

// The most that a message shows of a text, and of what the parser says, which has a part of the text in it.
constexpr size_t kLongestText = 60;
constexpr size_t kLongestReason = 200;

// Over the bytes of a text; `end` says how many the parser has taken.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// "line:column" of a byte, both from 1.
std::string position(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return fmt::format("{}:{}", line, column);
}

// Where the text begins whose closing quote is the last byte of `read`.
size_t opening_quote(std::string_view read) {
  size_t at = read.size() - 1;
  while (at > 0) {
    if (read[--at] != '"') continue;
    size_t backslashes = 0;
    while (backslashes < at && read[at - 1 - backslashes] == '\\') ++backslashes;
    if (backslashes % 2 == 0) break;
  }
  return at;
}

// Where more than kMaxJsonBlanks blanks and characters of comments are in one place; npos where nowhere. The parser
// keeps all of them for its message.
size_t find_long_gap(std::string_view text, bool comments) {
  enum class In { kValue, kString, kLine, kComment } in = In::kValue;
  size_t gap = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at], next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (in == In::kString) {
      if (c == '\\') ++at;
      if (c == '"') in = In::kValue;
      continue;
    }
    if (in == In::kValue && comments && c == '/' && (next == '/' || next == '*')) {
      in = next == '/' ? In::kLine : In::kComment;
    } else if (in == In::kLine && c == '\n') {
      in = In::kValue;
    } else if (in == In::kComment && c == '*' && next == '/') {
      in = In::kValue;
      gap += 2;
      ++at;
      continue;
    } else if (in == In::kValue && c != ' ' && c != '\n' && c != '\t' && c != '\r') {
      gap = 0;
      if (c == '"') in = In::kString;
      continue;
    }
    if (++gap > kMaxJsonBlanks) return at;
  }
  return std::string_view::npos;
}

// Whether a failure may show what the text says.
enum class Content { kShown, kPrivate };

// Builds the value out of the parser's events. No recursion: what is open is a list.
class Builder {
 public:
  Builder(std::string_view text, const JsonRules& rules, Content content = Content::kShown)
      : text_(text), rules_(rules), shown_(content == Content::kShown), seen_(text.data()) {}

  Result<Json> build() {
    if (const size_t gap = find_long_gap(text_, rules_.comments); gap != std::string_view::npos) {
      return Status(Code::kInvalidConfig,
                    fmt::format("{}: more than {} blanks and characters of comments are in one place",
                                position(text_, gap), kMaxJsonBlanks));
    }
    const Cursor begin(text_.data(), &seen_);
    const Cursor end(text_.data() + text_.size(), &seen_);
    const bool whole = Json::sax_parse(begin, end, this, Json::input_format_t::json, /*strict=*/true, rules_.comments);
    // The parser takes a NUL byte for the end of the text, and everything after it for nothing.
    const size_t nul = text_.find('\0');
    if (nul != std::string_view::npos && (whole || mistake_at_ >= nul))
      fail(nul, "malformed JSON: a NUL byte, which no JSON text has");
    if (whole && nul == std::string_view::npos) return std::move(root_);
    return Status(Code::kInvalidConfig, fmt::format("{}: {}", position(text_, mistake_at_), mistake_));
  }

  // The parser's events. False ends it.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(int64_t value) { return add(value); }
  bool number_unsigned(uint64_t value) {
    const bool fits = value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return fits ? add(value) : add(static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // not in text
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() {
    names_.pop_back();
    return close();
  }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!names_.back().insert(name).second) {
      const std::string_view read = text_.substr(0, static_cast<size_t>(seen_ - text_.data()));
      const std::string which = shown_ ? "the name " + quote(name, kLongestText) : "a name";
      return fail(opening_quote(read), which + " occurs twice in one object; each may occur once");
    }
    if (names_.back().size() > kMaxJsonNames)
      return fail_here(fmt::format("an object has more than {} names", kMaxJsonNames));
    // The object itself would look through all of its names first.
    open_.back()->get_ref<Json::object_t&>().emplace_back(std::move(name), nullptr);
    return true;
  }

  // `byte` counts from 1 and is the last that was read.
  bool parse_error(size_t byte, const std::string& token, const nlohmann::detail::exception& error) {
    constexpr int kOutOfRange = 406;
    const size_t at = byte == 0 ? 0 : byte - 1;
    if (error.id == kOutOfRange) {
      const std::string which = shown_ ? "the number " + printable(token, kLongestText) : "a number";
      return fail(at, fmt::format("malformed JSON: {} is out of range", which));
    }
    if (!shown_) return fail(at, "malformed JSON: it must be one complete JSON object, with nothing after it");
    if (at < text_.size() && (text_[at] == ']' || text_[at] == '}') && last_before(at) == ',')
      return fail(at, fmt::format("malformed JSON: a comma comes before '{}'", text_[at]));
    // Without the library's own prefix and position: "unexpected '}'; expected string literal".
    std::string what = error.what();
    if (const size_t details = what.find(" - "); details != std::string::npos) what.erase(0, details + 3);
    return fail(at, "malformed JSON: " + printable(what, kLongestReason));
  }

 private:
  Json* place(Json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) return &parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
    Json& member = parent.get_ref<Json::object_t&>().back().second;
    return &(member = std::move(value));
  }

  bool add(Json&& value) {
    if (!count()) return false;
    place(std::move(value));
    return true;
  }

  bool count() {
    return ++values_ <= kMaxJsonValues || fail_here(fmt::format("the text has more than {} values", kMaxJsonValues));
  }

  bool open(Json&& value) {
    if (open_.size() >= static_cast<size_t>(rules_.depth)) {
      return fail_here(fmt::format("lists and objects are nested more than {} deep", rules_.depth));
    }
    if (!count()) return false;
    if (value.is_object()) names_.emplace_back();
    open_.push_back(place(std::move(value)));  // stays where it is: its parent takes no other until it is closed
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  // The last byte before this one that is no blank; NUL when there is none.
  char last_before(size_t byte) const {
    const size_t last = text_.substr(0, byte).find_last_not_of(" \t\r\n");
    return last == std::string_view::npos ? '\0' : text_[last];
  }

  // At the last byte that the parser has taken.
  bool fail_here(std::string mistake) {
    return fail(static_cast<size_t>(seen_ - text_.data()) - 1, std::move(mistake));
  }

  bool fail(size_t byte, std::string mistake) {
    mistake_at_ = byte;
    mistake_ = std::move(mistake);
    return false;
  }

  std::string_view text_;
  const JsonRules& rules_;
  bool shown_;
  const char* seen_;  // behind the last byte that the parser has taken
  Json root_;
  std::vector<Json*> open_;
  std::vector<std::set<std::string>> names_;  // per open object
  size_t values_ = 0;
  size_t mistake_at_ = 0;
  std::string mistake_;
};

// Copies what is left of `letters`, which is what a text of the value begins with and more.
Json beginning(const Json& json, size_t& letters) {
  const auto take = [&letters](const std::string& text) {
    const size_t taken = std::min(text.size(), letters);
    letters -= taken;
    return text.substr(0, taken);
  };
  const auto take_one = [&letters] {
    if (letters == 0) return false;
    --letters;
    return true;
  };
  if (json.is_string()) return take(json.get_ref<const std::string&>());
  Json part = json.is_array() ? Json::array() : json.is_object() ? Json::object() : json;
  if (json.is_array()) {
    for (auto element = json.begin(); element != json.end() && take_one(); ++element)
      part.push_back(beginning(*element, letters));
  } else if (json.is_object()) {
    for (auto member = json.begin(); member != json.end() && take_one(); ++member) {
      // Two long names may begin alike: the object itself would take the second for the first.
      std::string name = take(member.key());
      part.get_ref<Json::object_t&>().emplace_back(std::move(name), beginning(member.value(), letters));
    }
  }
  return part;
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonRules& rules) {
  return within_memory(fmt::format("a JSON text of {} bytes", text.size()),
                       [&] { return Builder(text, rules).build(); });
}

Result<Json> parse_private_json(std::string_view text, const JsonRules& rules) {
  return within_memory(fmt::format("a JSON text of {} bytes", text.size()),
                       [&] { return Builder(text, rules, Content::kPrivate).build(); });
}

Json json_or_null(std::string_view text, const JsonRules& rules) {
  Result<Json> json = Builder(text, rules).build();
  return json.ok() ? std::move(json).value() : Json();
}

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

Json brief_part(const Json& json) {
  size_t letters = 2 * kLongestText;
  return beginning(json, letters);
}

std::string brief_json(const Json& json) {
  return printable(brief_part(json).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace), kLongestText);
}

std::string text_member(const Json& object, const char* name, std::string_view fallback) {
  const auto member = object.find(name);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string(fallback);
}

int64_t integer_member(const Json& object, const char* name, int64_t fallback) {
  const auto member = object.find(name);
  return member != object.end() && member->is_number_integer() ? member->get<int64_t>() : fallback;
}

double number_member(const Json& object, const char* name, double fallback) {
  const auto member = object.find(name);
  return member != object.end() && member->is_number() ? member->get<double>() : fallback;
}

}  // namespace hstujit
