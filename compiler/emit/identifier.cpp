#include "compiler/emit/identifier.h"

#include <cctype>

namespace hstujit {

namespace {

bool is_part(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

}  // namespace

size_t find_identifier(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool starts = at == 0 || !is_part(text[at - 1]);
    if (starts && (end == text.size() || !is_part(text[end]))) return at;
  }
  return std::string_view::npos;
}

}  // namespace hstujit
