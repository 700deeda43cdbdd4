// Numbers that people write in options and variables: decimal digits alone, so that 010 and 0x10 mean nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hstujit {

// Parses decimal digits without a sign or blanks; nothing for other text, and for more than 2^64 - 1.
std::optional<uint64_t> whole_number(std::string_view text);

// Bytes: a whole number with K, M, G or T behind it, which are powers of 1024, as 512M, 512m, 512MB or 512MiB; nothing
// for other text, and for 2^63 and more.
std::optional<int64_t> whole_size(std::string_view text);
inline constexpr std::string_view kSizeAllowed =
    "a whole number of bytes below 2^63, or of KiB, MiB, GiB or TiB, such as 512M";

}  // namespace hstujit
