// The metadata beside a cubin: what is read, written and read again is the same.
#include "autotune_cache/files/artifact_metadata.h"
#include "autotune_cache/files/checked_json.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

namespace {

// The digest that names the file of an entry with this key.
std::string digest_of(const Json& key) {
  ArtifactKey read{.generator = text_member(key, "generator"),
                   .spec = text_member(key, "spec"),
                   .direction = text_member(key, "direction"),
                   .config = text_member(key, "config"),
                   .options = {},
                   .arch = text_member(key, "arch")};
  if (const auto options = key.find("options"); options != key.end() && options->is_array()) {
    for (const Json& option : *options) read.options.push_back(option.is_string() ? option.get<std::string>() : "");
  }
  const auto digest = artifact_digest(read);
  return parsed(digest) ? *digest : std::string();
}

}  // namespace

void cache_metadata(std::string_view input) {
  parsed(parse_metadata(input, std::string(64, '0')));
  const auto object = object_of(input);
  if (!object || !object->contains("key") || !(*object)["key"].is_object()) return;
  const std::string text = checked_file(*object, "hstujit-artifact-1");
  const std::string digest = digest_of(Json::parse(text)["key"]);
  const auto metadata = parse_metadata(text, digest);
  if (!parsed(metadata)) return;
  const std::string formatted = *format_metadata(*metadata);
  const auto again = parse_metadata(formatted, digest);
  expect(parsed(again), "metadata that is written is read");
  expect(again->key == metadata->key && again->size == metadata->size && again->sha256 == metadata->sha256,
         "metadata that is written is read as the same");
  expect(*format_metadata(*again) == formatted, "metadata that is read is written as the same");
}

}  // namespace hstujit::fuzz
