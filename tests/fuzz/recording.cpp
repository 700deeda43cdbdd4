// A file of HSTUJIT_RECORD: a miss that was read is written and read as the same.
#include "runtime/dispatch/miss_record.h"
#include "tests/fuzz/oracles.h"
#include "tests/fuzz/targets.h"

namespace hstujit::fuzz {

void recording(std::string_view input) {
  const auto recording = parse_recording(input, "misses");
  if (!parsed(recording)) return;
  if (!recording->warning.empty()) expect_sentence(Status(Code::kInvalidConfig, recording->warning));
  expect(recording->misses.size() == recording->config.instances.size(), "each miss has an instance");
  for (const MissRecord& miss : recording->misses) {
    const auto again = parse_miss(format_miss(miss));
    expect(parsed(again), "a miss that is written is read");
    expect(again->key == miss.key && again->length == miss.length && again->reason == miss.reason,
           "a miss that is written is read as the same");
  }
}

}  // namespace hstujit::fuzz
