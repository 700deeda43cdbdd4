#include "compiler/support/code_text.h"

#include <algorithm>
#include <cctype>

namespace hstujit {

namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
// Whether a byte is part of a name; one beyond ASCII counts as a letter.
bool is_letter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalpha(byte) != 0 || c == '_' || c == '$' || byte >= 0x80;
}

// One look at every byte, by the tokens of the language: only they tell a comment from a literal, and the ' of 1'000
// from that of 'a'.
class Stripper {
 public:
  explicit Stripper(std::string_view code) : code_(code) {}

  std::string run() {
    while (at_ < code_.size()) step();
    end_line();
    return std::move(text_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < code_.size() ? code_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\n') {
      ++at_;
      end_line();
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at_;
      blank_ = true;
    } else if (c == '/' && peek(1) == '/') {
      skip_line();
    } else if (c == '/' && peek(1) == '*') {
      const size_t end = code_.find("*/", at_ + 2);
      at_ = end == std::string_view::npos ? code_.size() : end + 2;
      blank_ = true;
    } else if (c == '"' || c == '\'') {
      put(literal_end(c));
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      put(number_end());
    } else if (is_letter(c)) {
      put_word();
    } else {
      put(at_ + 1);
    }
  }

  // The token from here to `end`, behind the blanks before it.
  void put(size_t end) {
    if (blank_ && !text_.empty() && text_.back() != '\n') text_ += ' ';
    blank_ = false;
    text_ += code_.substr(at_, end - at_);
    at_ = end;
  }

  void end_line() {
    blank_ = false;
    if (!text_.empty() && text_.back() != '\n') text_ += '\n';
  }

  // A // comment goes on behind a backslash at the end of its line.
  void skip_line() {
    for (; at_ < code_.size() && code_[at_] != '\n'; ++at_) {
      if (code_[at_] == '\\' && peek(1) == '\n') ++at_;
    }
  }

  // To the closing quote, or to the end of the line where there is none, as after #error.
  size_t literal_end(char quote) const {
    size_t end = at_ + 1;
    while (end < code_.size() && code_[end] != quote && code_[end] != '\n') end += code_[end] == '\\' ? 2 : 1;
    return std::min(end < code_.size() && code_[end] == '\n' ? end : end + 1, code_.size());
  }

  size_t number_end() const {
    size_t end = at_ + 1;
    for (; end < code_.size(); ++end) {
      const char c = code_[end], before = code_[end - 1];
      const bool exponent =
          (c == '+' || c == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
      const bool separator =
          c == '\'' && end + 1 < code_.size() && (is_digit(code_[end + 1]) || is_letter(code_[end + 1]));
      if (!is_digit(c) && !is_letter(c) && c != '.' && !exponent && !separator) break;
    }
    return end;
  }

  void put_word() {
    size_t end = at_;
    while (end < code_.size() && (is_letter(code_[end]) || is_digit(code_[end]))) ++end;
    const std::string_view word = code_.substr(at_, end - at_);
    const bool raw = word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR";
    put(raw && end < code_.size() && code_[end] == '"' ? raw_string_end(end) : end);
  }

  // R"delimiter( ... )delimiter"
  size_t raw_string_end(size_t quote) const {
    const size_t open = code_.find('(', quote);
    if (open == std::string_view::npos) return code_.size();
    const std::string closing = ")" + std::string(code_.substr(quote + 1, open - quote - 1)) + "\"";
    const size_t end = code_.find(closing, open);
    return end == std::string_view::npos ? code_.size() : end + closing.size();
  }

  std::string_view code_;
  size_t at_ = 0;
  std::string text_;
  bool blank_ = false;  // before the next token of the line
};

}  // namespace

std::string without_comments(std::string_view code) { return Stripper(code).run(); }

}  // namespace hstujit
