// Lines that HSTUJIT_RECORD lists: one line for each kernel that was not there when an op was prepared, and its reader.
//
// A line is a JSON object, appended by one write, so that any number of processes may share a file:
//   {"hstujit_miss": 1, "op", "spec", "direction", "device", "arch", "sm_count", "bucket", "length", "length_mode",
//    "reason"}, "small_batch" or "short_sequences": true where it is of such batches, and "deterministic": true where
//    such kernels are asked for.
// It holds the whole tuning key: what is tuned from it is found by whoever missed it, in whichever length mode.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/records/tuning_record.h"
#include "compiler/spec/config.h"
#include "compiler/support/read_limits.h"

namespace hstujit {

// Raised when the meaning of a field changes; lines of other versions are skipped.
inline constexpr int kMissVersion = 1;

enum class MissReason {
  kUntuned,     // no record had a winner for the key
  kUncompiled,  // a record had, or nothing is timed for the key (is_tuned), but no cache held the cubin
};
std::string_view to_string(MissReason reason);  // "untuned" "uncompiled"

struct MissRecord {
  TuningKey key;
  int64_t length = 0;  // of the inputs that the key is timed with: its bucket, or the rows without sequences
  LengthMode length_mode = LengthMode::kPow2;  // that made the bucket
  MissReason reason = MissReason::kUntuned;

  bool operator==(const MissRecord&) const = default;
};

std::string format_miss(const MissRecord& miss);  // without a newline
// kInvalidConfig with what is wrong.
Result<MissRecord> parse_miss(std::string_view line);

// A whole file, each key once. A key that was recorded for both reasons is untuned.
struct Recording {
  std::string origin;
  std::vector<MissRecord> misses;
  std::vector<size_t> lines;  // where each of `misses` stands first, from 1
  Config config;        // one instance for each of `misses`, in their order, with the miss's length as max_seq_len
  std::string warning;  // names the first line that was skipped and counts them; "" when none was
};

// Torn lines, and lines that this library did not write or does not understand, are skipped. Failure: kInvalidConfig
// when no line is left, or what read_file says. The warning also says where more than `max_kernels` are asked for: the
// first ones are taken.
Result<Recording> parse_recording(std::string_view text, const std::string& origin,
                                  size_t max_kernels = kMaxConfigKernels);
Result<Recording> load_recording(const std::filesystem::path& path);

}  // namespace hstujit
