// A good tuning record that takes far more memory than a test's process is left with, made without that memory.
#pragma once

#include <fmt/format.h>

#include <string>

#include "autotune_cache/records/tuning_record.h"
#include "compiler/support/hash.h"
#include "compiler/support/json.h"
#include "tests/autotune_cache/samples.h"

namespace hstujit {

inline std::string text_of_large_record(const TuningKey& key) {
  constexpr int kTimings = 30'000, kFields = 60;
  const std::string config = sample_config(64);
  Json json = json_or_null(*format_record(sample_record({{config, kWorkload, "s", 10, 1}}, key)));
  json.erase("checksum");
  std::string text = dump_json(json);
  const std::string timing = dump_json(json["timed"][0]);
  std::string fields;
  for (int i = 0; i < kFields; ++i) fields += fmt::format(R"("f{0}":{0},)", i);
  std::string timings;
  for (int i = 0; i < kTimings; ++i) {
    std::string other = timing;
    timings += other.replace(other.find(config), config.size(), fmt::format("{{{}\"a\":{}}}", fields, i)) + ',';
  }
  text.insert(text.find(timing), timings);
  text.insert(text.size() - 1, fmt::format(R"(,"checksum":"{}")", sha256_hex(text)));
  return text;
}

}  // namespace hstujit
