// Keys, entries and records that tests of the cache agree upon; they need no GoogleTest.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "autotune_cache/files/artifact_metadata.h"
#include "autotune_cache/files/cache_key.h"
#include "autotune_cache/records/tuning_record.h"

namespace hstujit {

inline ArtifactKey sample_key(const std::string& config = R"({"block_m":128})") {
  return {.generator = "d1",
          .spec = R"({"op":"hstu_attention","heads":4})",
          .direction = "forward",
          .config = config,
          .options = {"--gpu-architecture=sm_90a", "--std=c++17"},
          .arch = "sm_90a"};
}

inline ArtifactInfo sample_info() {
  return {.kernel = "hstu_attention_forward", .nvrtc = "13.0", .library = "0.1.0", .resources = R"({"registers":168})"};
}

// Bytes that pass for a cubin and say `text`.
inline std::string cubin_of(const std::string& text) {
  std::string bytes("\x7f\x45\x4c\x46");
  bytes.append(60, '\0').append(text);
  return bytes;
}

inline std::string sample_config(int block_m) { return R"({"block_m":)" + std::to_string(block_m) + "}"; }

inline constexpr const char* kWorkload = "b3-n1024-r7-t0-0123456789abcdef";

inline TuningKey sample_tuning_key(const std::string& op = "hstu_attention") {
  return {.op = op,
          .spec = R"({"heads":4})",
          .direction = "forward",
          .device = "NVIDIA H200",
          .arch = "sm_90a",
          .sm_count = 132,
          .bucket = 1024};
}

// A record of timings on kWorkload.
inline TuningRecord sample_record(std::vector<TimedCandidate> timed, TuningKey key = sample_tuning_key()) {
  TuningRecord record;
  record.key = std::move(key);
  record.workload = kWorkload;
  record.timed = std::move(timed);
  return record;
}

}  // namespace hstujit
