// Agreements of the processes of the shared cache tests: the keys, and the bytes and records that follow from them.
#pragma once

#include <string>

#include "tests/autotune_cache/samples.h"

namespace hstujit {

inline constexpr int kSharedKeys = 24;

inline ArtifactKey shared_key(int number) { return sample_key(sample_config(number)); }

// A cubin of several writes, full of its key.
inline std::string shared_cubin(int number) {
  std::string text;
  for (int i = 0; i < 4000 * (1 + number % 3); ++i)
    text += "key " + std::to_string(number) + " part " + std::to_string(i);
  return cubin_of(text);
}

// A timing that process `who` adds to the record of a key.
inline TuningRecord shared_record(int number, int who) {
  TuningKey key = sample_tuning_key();
  key.bucket = number;
  return sample_record({{sample_config(who), kWorkload, "s", 10.0 + who, 0.1}}, key);
}

}  // namespace hstujit
