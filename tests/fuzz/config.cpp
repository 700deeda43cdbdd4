// A config: its instances, and every text that is made of them, are read as the same again.
#include "compiler/spec/config.h"

#include "compiler/spec/json_text.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

namespace {

void check_instance(const Instance& instance) {
  expect(!instance.name.empty() && !instance.directions.empty() && !instance.max_seq_lens.empty(),
         "an instance has a name, a direction and a max_seq_len");
  const Json json = instance.spec->to_json();
  const auto again = parse_op_spec(json, "spec");
  expect(again.ok() && (*again)->to_json() == json, "the JSON of a spec is read as that spec");
  const auto of_key = parse_op_spec(Json::parse(key_text(*instance.spec)), "spec");
  expect(of_key.ok() && (*of_key)->to_json() == json, "the key of a spec is read as that spec");
  for (const Direction direction : instance.directions) {
    expect(instance.spec->supports(direction), "an instance has directions that its operator supports");
    expect(!instance.spec->signature(direction).empty(), "a direction has arguments");
  }
  for (const int64_t longest : instance.max_seq_lens) {
    // A batch may be as large as the memory of the machine; nobody draws one before it is launched.
    constexpr int64_t kLargestBatch = 1 << 12;
    if (instance.lengths.list.empty() && instance.lengths.uniform.batch > kLargestBatch) continue;
    const Lengths lengths = make_lengths(instance, longest);
    for (const int64_t rows : lengths.rows) expect(rows >= 0 && rows <= longest, "lengths are in [0, max_seq_len]");
  }
}

}  // namespace

void config(std::string_view input) {
  const Result<Config> config = parse_config(input, "config.json", "no_such_folder");
  if (!parsed(config)) return;
  expect(!config->instances.empty(), "a config has an instance");
  for (const Instance& instance : config->instances) {
    const auto found = config->find(instance.name);
    expect(found.ok() && *found == &instance, "an instance is found by its name");
    check_instance(instance);
  }
}

}  // namespace hstujit::fuzz
