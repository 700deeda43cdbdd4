// A file of frozen choices.
#include "runtime/engine/frozen_choices.h"

#include <nlohmann/json.hpp>

#include "autotune_cache/records/tuning_key_json.h"
#include "compiler/support/json.h"
#include "runtime/engine/generator_keys.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

void frozen_choices(std::string_view input) {
  parsed(FrozenChoices::parse(input, "choices.json"));
  auto object = object_of(input);
  if (!object) return;
  if (auto choices = object->find("choices"); choices != object->end() && choices->is_array()) {
    for (auto& row : *choices) {
      if (!row.is_object() || !row.contains("config")) continue;
      const auto config = parse_kernel_config(row["config"]);
      if (!config.ok()) continue;
      row["generator"] = kernel_generator(text_member(row, "op"), *config);
      TuningKey key = tuning_key_from(row);
      if (row.contains("spec")) key.spec = dump_json(row["spec"]);
      row["key"] = tuning_digest(key);
    }
  }
  const auto choices = FrozenChoices::parse(checked_file(*object, "hstujit-choices-1"), "choices.json");
  if (!parsed(choices)) return;
  expect(choices->checksum().size() == 64, "the checksum of choices is a SHA-256");
  expect(choices->size() <= (*object)["choices"].size(), "there are no more choices than rows");
  TuningKey key;
  key.op = "hstu_attention";
  key.spec = R"({"op":"hstu_attention"})";
  if (const auto nearest = choices->nearest({key}))
    expect(!nearest->differences.empty(), "the nearest choice is that of another key");
}

}  // namespace hstujit::fuzz
