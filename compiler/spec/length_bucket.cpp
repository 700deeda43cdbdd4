#include "compiler/spec/length_bucket.h"

#include <algorithm>
#include <bit>
#include <string>

#include "compiler/support/integers.h"

namespace hstujit {

namespace {

constexpr int64_t kSmallestPow2 = 64;
constexpr int64_t kFineFrom = 8192;
constexpr int64_t kFineSteps = 4;

constexpr LengthMode kModes[] = {LengthMode::kPow2, LengthMode::kStatic, LengthMode::kFine, LengthMode::kExact};

int64_t next_pow2(int64_t length) {
  return std::max(kSmallestPow2,
                  static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(length, 1)))));
}

int64_t fine(int64_t length) {
  if (length <= kFineFrom) return next_pow2(length);
  const int64_t step = next_pow2(length) / 2 / kFineSteps;
  return round_up(length, step);
}

int64_t nearest_listed(int64_t length, const std::vector<int64_t>& listed) {
  if (listed.empty()) return length;
  int64_t best = 0;
  for (const int64_t candidate : listed) {
    if (candidate >= length && (best == 0 || candidate < best)) best = candidate;
  }
  return best > 0 ? best : *std::max_element(listed.begin(), listed.end());
}

}  // namespace

std::string_view to_string(LengthMode mode) {
  std::string_view names = kLengthModeNames;
  for (int before = static_cast<int>(mode); before > 0; --before) names.remove_prefix(names.find(' ') + 1);
  return names.substr(0, names.find(' '));
}

std::optional<LengthMode> parse_length_mode(std::string_view text) {
  for (const LengthMode mode : kModes) {
    if (to_string(mode) == text) return mode;
  }
  return std::nullopt;
}

Status read_field(const Json& json, const FieldRules& rules, const std::string& path, LengthMode& value) {
  const auto parsed = json.is_string() ? parse_length_mode(json.get_ref<const std::string&>()) : std::nullopt;
  if (!parsed) return choice_error(json, rules, path, write_field(value));
  value = *parsed;
  return {};
}

Json write_field(LengthMode value) { return std::string(to_string(value)); }

int64_t length_bucket(LengthMode mode, int64_t max_seq_len, const std::vector<int64_t>& listed) {
  switch (mode) {
    case LengthMode::kPow2:
      return next_pow2(max_seq_len);
    case LengthMode::kStatic:
      return nearest_listed(max_seq_len, listed);
    case LengthMode::kFine:
      return fine(max_seq_len);
    case LengthMode::kExact:
      break;
  }
  return max_seq_len;
}

}  // namespace hstujit
