#include "compiler/support/text.h"

#include <fmt/format.h>

namespace hstujit {

namespace {

// Bytes of the character that `text`, which is not empty, begins with; 0 when they are no UTF-8: a byte that begins
// none, a torn character, one that has a shorter form or is none of Unicode.
size_t character_size(std::string_view text) {
  const auto byte = [text](size_t index) { return static_cast<unsigned char>(text[index]); };
  if (byte(0) < 0x80) return 1;
  const size_t size = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool longer_than_needed = (byte(0) == 0xE0 && byte(1) < 0xA0) || (byte(0) == 0xF0 && byte(1) < 0x90);
  const bool no_character = (byte(0) == 0xED && byte(1) >= 0xA0) || (byte(0) == 0xF4 && byte(1) >= 0x90);
  return longer_than_needed || no_character ? 0 : size;
}

std::string escaped(std::string_view text, size_t longest, bool quotes) {
  std::string out;
  while (!text.empty()) {
    const size_t size = character_size(text);
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    std::string next(text.substr(0, size));
    if (quotes && (c == '"' || c == '\\')) {
      next = std::string("\\") + c;
    } else if (c == '\n') {
      next = "\\n";
    } else if (c == '\t') {
      next = "\\t";
    } else if (size == 0 || byte < 0x20 || byte == 0x7f) {
      next = fmt::format("\\x{:02x}", byte);
    }
    if (next.size() > longest - out.size()) return out + "...";
    out += next;
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string printable(std::string_view text, size_t longest) { return escaped(text, longest, /*quotes=*/false); }

std::string quote(std::string_view text, size_t longest) { return '"' + escaped(text, longest, /*quotes=*/true) + '"'; }

}  // namespace hstujit
