#include "compiler/spec/json_place.h"

#include <fmt/format.h>

#include <algorithm>
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

// A name as a step of a path.
std::string step_of(std::string_view name) {
  return is_plain(name) ? std::string(name) : fmt::format("[{}]", quote(name, name.size() * kLongestEscape));
}

// Takes the first step off a path that is not empty, without the dot before it.
std::string_view take_step(std::string_view& path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  size_t end = 0;
  if (path.starts_with("[\"")) {
    for (end = 2; end < path.size() && path[end] != '"';) end += path[end] == '\\' ? 2 : 1;
    end += 2;  // the quote and the bracket
  } else {
    end = path.find_first_of(".[", 1);
  }
  const std::string_view step = path.substr(0, end);
  path.remove_prefix(step.size());
  return step;
}

// Goes over the tokens of a text and notes the places of what is wanted. Depth costs memory of its own, none of the
// stack. Below what nobody wants, names are not looked at.
class Scanner {
 public:
  using Node = JsonPlaces::Node;

  Scanner(std::string_view text, Node& root) : text_(text), root_(root) {}

  void scan() {
    if (text_.starts_with("\xEF\xBB\xBF")) byte_ = 3;
    skip_blanks();
    read_value(byte_, &root_);
    while (!open_.empty()) {
      skip_blanks();
      if (byte_ >= text_.size()) return;
      Container& container = open_.back();
      const char c = text_[byte_];
      if (c == ']' || c == '}') {
        open_.pop_back();
        ++byte_;
      } else if (c == ',') {
        ++byte_;
      } else if (container.is_list) {
        const size_t index = container.index++;
        read_value(byte_, wants_part(container.node) ? part(*container.node, fmt::format("[{}]", index)) : nullptr);
      } else {
        read_member(container.node);
      }
    }
  }

 private:
  struct Container {
    Node* node;  // null where nothing in it is wanted
    bool is_list;
    size_t index = 0;
  };

  static bool wants_part(const Node* node) { return node != nullptr && !node->inner.empty(); }
  static Node* part(Node& node, const std::string& step) {
    const auto found = node.inner.find(step);
    return found == node.inner.end() ? nullptr : &found->second;
  }

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

  void read_member(Node* around) {
    const size_t begin = byte_;
    const std::string_view token = skip_token();
    skip_blanks();
    if (byte_ < text_.size() && text_[byte_] == ':') ++byte_;
    skip_blanks();
    Node* node = nullptr;
    if (wants_part(around)) {
      const Json name = json_or_null(token);
      node = part(*around, step_of(name.is_string() ? name.get_ref<const std::string&>() : token));
    }
    read_value(begin, node);
  }

  void read_value(size_t name, Node* node) {
    if (node != nullptr && !node->place) node->place = JsonPlace{name, byte_};
    if (byte_ >= text_.size()) return;
    const char c = text_[byte_];
    if (c == '{' || c == '[') {
      open_.push_back({node, c == '['});
      ++byte_;
    } else {
      skip_token();
    }
  }

  std::string_view text_;
  Node& root_;
  size_t byte_ = 0;
  std::vector<Container> open_;
};

}  // namespace

std::string join_path(const std::string& path, std::string_view name) {
  const bool dotted = !path.empty() && is_plain(name);
  return fmt::format("{}{}{}", path, dotted ? "." : "", step_of(name));
}

std::string line_and_column(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == std::string_view::npos ? before.size() + 1 : before.size() - start;
  return fmt::format("{}:{}", line, column);
}

JsonPlaces::JsonPlaces(std::string_view text, const std::set<std::string>& paths) {
  for (std::string_view path : paths) {
    Node* node = &root_;
    while (!path.empty()) node = &node->inner[std::string(take_step(path))];
  }
  Scanner(text, root_).scan();
}

JsonPlace JsonPlaces::of(std::string_view path) const {
  JsonPlace place = root_.place.value_or(JsonPlace());
  const Node* node = &root_;
  while (!path.empty()) {
    const auto found = node->inner.find(take_step(path));
    if (found == node->inner.end() || !found->second.place) break;
    node = &found->second;
    place = *node->place;
  }
  return place;
}

}  // namespace hstujit
