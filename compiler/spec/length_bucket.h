// Quantised max_seq_len: the length that stands for a problem's in tuning keys. Tuning and look-up both call
// length_bucket.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/spec/fields_json.h"

namespace hstujit {

enum class LengthMode {
  kPow2,    // the next power of two, from 64
  kStatic,  // the smallest listed length that is not shorter, else the largest listed
  kFine,    // as kPow2 up to 8192; above, four steps between powers of two
  kExact,   // the length itself
};

// In the order of the enumeration, separated by spaces.
inline constexpr std::string_view kLengthModeNames = "pow2 static fine exact";

std::string_view to_string(LengthMode mode);
std::optional<LengthMode> parse_length_mode(std::string_view text);

Status read_field(const Json& json, const FieldRules& rules, const std::string& path, LengthMode& value);
Json write_field(LengthMode value);

// `listed` is used by kStatic only; without any listed length that mode is kExact.
int64_t length_bucket(LengthMode mode, int64_t max_seq_len, const std::vector<int64_t>& listed = {});

}  // namespace hstujit
