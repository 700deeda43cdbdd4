// A tuning record: what is read, written and read again is the same, and a winner has a time.
#include "autotune_cache/records/tuning_record.h"

#include "autotune_cache/files/checked_json.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

namespace {

bool flag(const Json& json, const char* name) {
  const auto member = json.find(name);
  return member != json.end() && *member == true;
}

// The digest that names the file of a record with this key.
std::string digest_of(const Json& key) {
  return tuning_digest({.op = text_member(key, "op"),
                        .spec = text_member(key, "spec"),
                        .direction = text_member(key, "direction"),
                        .device = text_member(key, "device"),
                        .arch = text_member(key, "arch"),
                        .sm_count = integer_member(key, "sm_count", 0),
                        .bucket = integer_member(key, "bucket", 0),
                        .batch_class = batch_class_from(key),
                        .deterministic = flag(key, "deterministic")});
}

}  // namespace

void tuning_record(std::string_view input) {
  parsed(parse_record(input, std::string(64, '0')));
  const auto object = object_of(input);
  if (!object || !object->contains("key") || !(*object)["key"].is_object()) return;
  const std::string text = checked_file(*object, "hstujit-tuning-1");
  const std::string digest = digest_of(Json::parse(text)["key"]);
  const auto record = parse_record(text, digest);
  if (!parsed(record)) return;
  expect(record->winner.empty() || record->timing(record->winner) != nullptr, "a winner has a time");
  const auto formatted = format_record(*record);
  expect(parsed(formatted), "a record that was read can be written");
  const auto again = parse_record(*formatted, digest);
  expect(parsed(again), "a record that is written is read");
  expect(*again == *record, "a record that is written is read as the same");
  const auto merged = merge_records(*record, *record);
  expect(parsed(merged), "a record can be merged with itself");
  expect(merged->winner.empty() || merged->timing(merged->winner) != nullptr, "the winner of a merge has a time");
}

}  // namespace hstujit::fuzz
