// JSON that carries its own checksum. What is written from a value that was read is read as the same value.
#include "autotune_cache/files/checked_json.h"

#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

namespace {

constexpr std::string_view kFormat = "hstujit-tuning-1";

}  // namespace

void checked_json(std::string_view input) {
  parsed(parse_checked_json(input, kFormat));
  const auto object = object_of(input);
  if (!object) return;
  const std::string text = checked_file(*object, kFormat);
  const auto first = parse_checked_json(text, kFormat);
  if (!parsed(first)) return expect(false, "a file that was just written is whole");
  expect(*format_checked_json(*first, text.size()) == text, "a file that is read and written again is the same");
  expect(!parse_checked_json(text, "hstujit-choices-1").ok(), "another format is refused");
}

}  // namespace hstujit::fuzz
