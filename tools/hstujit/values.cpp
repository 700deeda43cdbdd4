#include "tools/hstujit/values.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "compiler/support/run_limits.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

struct Number {
  double value = 0;
  std::string_view rest;  // what follows it
};

std::optional<Number> leading_number(std::string_view text) {
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc() || !std::isfinite(number.value)) return std::nullopt;
  number.rest = text.substr(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

Result<double> parse_duration(std::string_view text) {
  const std::optional<Number> number = leading_number(text);
  double factor = 0;
  if (number) {
    if (number->rest.empty() || number->rest == "s") factor = 1;
    if (number->rest == "m" || number->rest == "min") factor = 60;
    if (number->rest == "h") factor = 3600;
  }
  if (factor == 0 || number->value <= 0 || number->value * factor > static_cast<double>(kMaxBudgetSeconds)) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("{} is no duration; allowed: a number above 0 with s, m, min or h, such as 60s, up to {}s",
                    quote(text), kMaxBudgetSeconds));
  }
  return number->value * factor;
}

std::string count_text(double count, std::string_view noun) { return counted(static_cast<int64_t>(count), noun); }

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string seconds_text(double seconds) {
  constexpr double kMinute = 60;
  if (seconds < 10) return fmt::format("{:.2f} s", seconds);
  if (seconds < 2 * kMinute) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace hstujit
