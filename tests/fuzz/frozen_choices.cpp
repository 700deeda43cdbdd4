// A file of frozen choices.
#include "runtime/frozen_choices.h"

#include <nlohmann/json.hpp>

#include "compiler/generator/generator_digest.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

void frozen_choices(std::string_view input) {
  parsed(FrozenChoices::parse(input, "choices.json"));
  auto object = object_of(input);
  if (!object) return;
  (*object)["generator"] = generator_digest();
  const auto choices = FrozenChoices::parse(checked_file(*object, "hstujit-choices-1"), "choices.json");
  if (!parsed(choices)) return;
  expect(choices->checksum().size() == 64, "the checksum of choices is a SHA-256");
  expect(choices->size() <= (*object)["choices"].size(), "there are no more choices than rows");
}

}  // namespace hstujit::fuzz
