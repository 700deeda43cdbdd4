#include "compiler/support/numbers.h"

#include <charconv>
#include <limits>

namespace hstujit {

namespace {

char upper(char letter) { return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter; }

}  // namespace

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return number;
}

std::optional<int64_t> whole_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  std::string_view unit = text.substr(digits.size());
  if (!unit.empty() && upper(unit.back()) == 'B') unit.remove_suffix(1);
  if (unit.size() == 2 && upper(unit.back()) == 'I') unit.remove_suffix(1);
  const size_t power = unit.empty() ? 0 : kUnits.find(upper(unit.front())) + 1;
  if (unit.size() > 1 || (!unit.empty() && power == 0)) return std::nullopt;
  const int shift = 10 * static_cast<int>(power);
  const std::optional<uint64_t> number = whole_number(digits);
  if (!number || *number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() >> shift)) return std::nullopt;
  return static_cast<int64_t>(*number << shift);
}

}  // namespace hstujit
