#include "compiler/support/arch.h"

#include <charconv>

namespace hstujit {

std::optional<int> arch_number(std::string_view arch) {
  constexpr std::string_view kPrefix = "sm_";
  constexpr int kMin = 10, kMax = 9999;
  if (!arch.starts_with(kPrefix)) return std::nullopt;
  arch.remove_prefix(kPrefix.size());
  if (arch.starts_with('0')) return std::nullopt;
  int number = 0;
  const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), number);
  if (error != std::errc() || number < kMin || number > kMax) return std::nullopt;
  const std::string_view suffix(end, static_cast<size_t>(arch.data() + arch.size() - end));
  if (!suffix.empty() && suffix != "a" && suffix != "f") return std::nullopt;
  return number;
}

}  // namespace hstujit
