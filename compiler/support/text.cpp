#include "compiler/support/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "compiler/support/printable.h"

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

// The code point of a whole character.
uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  uint32_t code = character.size() == 1 ? first : first & (0x7Fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return code;
}

// Characters that Unicode lets a font pass over (Default_Ignorable_Code_Point), annotations, and the blank of Braille.
bool takes_no_room(uint32_t code) {
  constexpr std::pair<uint32_t, uint32_t> kUnseen[] = {
      {0xAD, 0xAD},     {0x34F, 0x34F},     {0x115F, 0x1160},   {0x17B4, 0x17B5},  {0x180B, 0x180F}, {0x200B, 0x200D},
      {0x2060, 0x206F}, {0x2800, 0x2800},   {0x3164, 0x3164},   {0xFE00, 0xFE0F},  {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0},
      {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF}};
  return std::any_of(std::begin(kUnseen), std::end(kUnseen),
                     [&](const auto& range) { return code >= range.first && code <= range.second; });
}

// Characters that a terminal acts on, or that show a reader another text: control characters (C0, DEL, C1), separators
// of lines and paragraphs, marks that change the direction of writing, and what takes no room.
bool is_unsafe(uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
  const bool separator = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x61C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
  return control || separator || direction || takes_no_room(code);
}

// Collects what write(character, whole, out) makes of each character, and of each byte that is none: those are not
// `whole`.
template <typename Write>
std::string rewritten(std::string_view text, const Write& write) {
  std::string out;
  while (!text.empty()) {
    const size_t size = character_size(text);
    write(text.substr(0, size == 0 ? 1 : size), size != 0, out);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
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
    } else if (size == 0 || (size == 1 && is_unsafe(byte))) {
      next = fmt::format("\\x{:02x}", byte);
    } else if (is_unsafe(code_point(next))) {
      const uint32_t code = code_point(next);
      next = code > 0xFFFF ? fmt::format("\\U{:08x}", code) : fmt::format("\\u{:04x}", code);
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

bool is_among(std::string_view name, const std::vector<std::string>& names) {
  return std::ranges::find(names, name) != names.end();
}

std::string printable(std::string_view text, size_t longest) { return escaped(text, longest, /*quotes=*/false); }

std::string quote(std::string_view text, size_t longest) { return '"' + escaped(text, longest, /*quotes=*/true) + '"'; }

std::string as_utf8(std::string_view text) {
  return rewritten(text, [](std::string_view character, bool whole, std::string& out) {
    if (whole) {
      out += character;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(character.front()));
    }
  });
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (true) {
    const size_t end = text.find_first_of("\n\t");
    out += printable(text.substr(0, end), std::string::npos);
    if (end == std::string_view::npos) return out;
    out += text[end];
    text.remove_prefix(end + 1);
  }
}

std::string printable_json(std::string_view json) {
  return rewritten(json, [](std::string_view character, bool whole, std::string& out) {
    const bool layout = character == "\n" || character == "\t" || character == "\r";
    if (!whole) {
      out += "\xEF\xBF\xBD";
    } else if (!layout && is_unsafe(code_point(character))) {
      const uint32_t code = code_point(character);
      // JSON writes what 16 bits do not hold as two of UTF-16.
      out += code > 0xFFFF ? fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))
                           : fmt::format("\\u{:04x}", code);
    } else {
      out += character;
    }
  });
}

std::string counted(int64_t count, std::string_view noun) {
  const bool in_ies = noun.ends_with("ry");  // entry
  return counted(count, noun,
                 in_ies ? fmt::format("{}ies", noun.substr(0, noun.size() - 1)) : fmt::format("{}s", noun));
}

std::string counted(int64_t count, std::string_view noun, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? noun : plural);
}

std::string shown_digest(std::string_view digest) {
  constexpr size_t kDigits = 12;
  return std::string(digest.substr(0, kDigits));
}

}  // namespace hstujit
