// Values of command line options that are more than numbers, and how quantities are written in tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/support/status.h"

namespace hstujit {

// "90", "90s", "2m", "2min", "1.5h" in seconds; above 0.
Result<double> parse_duration(std::string_view text);

std::string count_text(double count, std::string_view noun);  // "1 key" "2 keys" "0 tuning records"
std::string bytes_text(double bytes);                         // "812 B" "1.2 MiB"
std::string seconds_text(double seconds);                     // "0.35 s" "74.1 s" "5 min 12 s"

}  // namespace hstujit
