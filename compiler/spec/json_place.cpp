#include "compiler/spec/json_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

constexpr size_t kLongestEscape = 4;  // \xff

bool is_plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '$';
  });
}

// The path of what is around a value.
void go_out(std::string& path) {
  const size_t end = path.find_last_of(".[");
  path.resize(end == std::string::npos ? 0 : end);
}

// Goes over the tokens of a text. Depth costs memory of its own, none of the stack.
class Scanner {
 public:
  using Found = std::function<void(const std::string& path, const JsonPlace& place)>;

  Scanner(std::string_view text, const Found& found) : text_(text), found_(found) {}

  void scan() {
    if (text_.starts_with("\xEF\xBB\xBF")) byte_ = 3;
    skip_blanks();
    read_value(byte_);
    while (!open_.empty()) {
      skip_blanks();
      if (byte_ >= text_.size()) return;
      Container& container = open_.back();
      path_.resize(container.path_size);
      const char c = text_[byte_];
      if (c == ']' || c == '}') {
        open_.pop_back();
        ++byte_;
      } else if (c == ',') {
        ++byte_;
      } else if (container.is_list) {
        path_ += fmt::format("[{}]", container.index++);
        read_value(byte_);
      } else {
        read_member();
      }
    }
  }

 private:
  struct Container {
    size_t path_size;
    bool is_list;
    size_t index = 0;
  };

  void skip_blanks() {
    while (byte_ < text_.size()) {
      const std::string_view rest = text_.substr(byte_);
      if (rest.starts_with("//")) {
        byte_ = std::min(text_.find('\n', byte_), text_.size());
      } else if (rest.starts_with("/*")) {
        const size_t end = text_.find("*/", byte_ + 2);
        byte_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else if (std::string_view(" \t\r\n").find(rest.front()) != std::string_view::npos) {
        ++byte_;
      } else {
        return;
      }
    }
  }

  // A text, a number or a word, at least one byte of it.
  std::string_view skip_token() {
    const size_t begin = byte_++;
    if (begin < text_.size() && text_[begin] == '"') {
      while (byte_ < text_.size() && text_[byte_] != '"') byte_ += text_[byte_] == '\\' ? 2 : 1;
      ++byte_;
    } else {
      while (byte_ < text_.size() && std::string_view(",]}/: \t\r\n").find(text_[byte_]) == std::string_view::npos)
        ++byte_;
    }
    byte_ = std::min(byte_, text_.size());
    return text_.substr(begin, byte_ - begin);
  }

  void read_member() {
    const size_t begin = byte_;
    const std::string_view token = skip_token();
    const Json name = json_or_null(token);
    skip_blanks();
    if (byte_ < text_.size() && text_[byte_] == ':') ++byte_;
    skip_blanks();
    path_ = join_path(path_, name.is_string() ? name.get_ref<const std::string&>() : std::string(token));
    read_value(begin);
  }

  void read_value(size_t name) {
    found_(path_, {name, byte_});
    if (byte_ >= text_.size()) return;
    const char c = text_[byte_];
    if (c == '{' || c == '[') {
      open_.push_back({path_.size(), c == '['});
      ++byte_;
    } else {
      skip_token();
    }
  }

  std::string_view text_;
  const Found& found_;
  size_t byte_ = 0;
  std::string path_;
  std::vector<Container> open_;
};

}  // namespace

std::string join_path(const std::string& path, std::string_view name) {
  if (!is_plain(name)) return fmt::format("{}[{}]", path, quote(name, name.size() * kLongestEscape));
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string line_and_column(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return fmt::format("{}:{}", line, column);
}

JsonPlaces::JsonPlaces(std::string_view text, const std::set<std::string>& paths) {
  std::set<std::string> wanted = {""};
  for (std::string path : paths) {
    while (!path.empty() && wanted.insert(path).second) go_out(path);
  }
  const Scanner::Found keep = [&](const std::string& path, const JsonPlace& place) {
    if (wanted.contains(path)) places_.emplace(path, place);
  };
  Scanner(text, keep).scan();
}

JsonPlace JsonPlaces::of(std::string path) const {
  auto found = places_.find(path);
  while (found == places_.end() && !path.empty()) {
    go_out(path);
    found = places_.find(path);
  }
  return found == places_.end() ? JsonPlace() : found->second;
}

}  // namespace hstujit
