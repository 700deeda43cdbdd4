// Which config a key gets, as a look-up has chosen it: one file for a key and a generator.
//
// The machine that prepares or prewarms a key notes its choice. There the note counts after all records, where the cost
// model would be asked: the estimates that were passed over, since their kernels spill, need not be compiled again. A
// bundle takes it along as an exported choice, and that decides: whatever records and cost model the other machine has,
// it runs the kernel that the bundle has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/records/tuning_record.h"
#include "compiler/support/status.h"

namespace hstujit {

// What a choice comes from. The names stand in files and in reports.
enum class ChoiceSource {
  kTuning,        // "tuning": the winner of a tuning record of the key
  kNearDevice,    // "near device": the winner of another device
  kOtherHeads,    // "other heads": the winner of the same instance with another number of heads
  kOtherSeed,     // "other seed": the winner of the same instance whose seed is a number of the launch
  kOtherBatches,  // "other batches": what the bucket's other batches have (batch_class.h)
  kHeuristic,     // "heuristic": the cost model
  kFrozen,        // "frozen": HSTUJIT_FROZEN
  kOverride,      // "override": HSTUJIT_OVERRIDE over one of the others
};
std::string_view to_string(ChoiceSource source);
std::optional<ChoiceSource> parse_choice_source(std::string_view name);

// Whether a tuning record of the key would be better.
inline bool is_guess(ChoiceSource source) {
  return source == ChoiceSource::kNearDevice || source == ChoiceSource::kOtherHeads ||
         source == ChoiceSource::kOtherSeed || source == ChoiceSource::kOtherBatches ||
         source == ChoiceSource::kHeuristic;
}

// A better estimate of the cost model, and why its kernel is not the one.
struct PassedOver {
  RecordedConfig config;
  std::string reason;  // short stable name, as TuningRejection's: "spill", "compile", ...
  std::string detail;

  bool operator==(const PassedOver&) const = default;
};

struct ChoiceRecord {
  TuningKey key;
  std::string generator;  // digest of all kernels that could be chosen: a config means another one to another digest
  RecordedConfig config;
  ChoiceSource source = ChoiceSource::kHeuristic;
  std::string device;                   // whose winner it is, where that is of another device
  std::vector<PassedOver> passed_over;  // kHeuristic, best estimate first
  bool exported = false;
  // kHeuristic: digest of the cost model. What it chose counts for another one only in a bundle, whose kernels decide.
  std::string estimates = {};

  bool operator==(const ChoiceRecord&) const = default;
};

// 64 hexadecimal digits over both.
std::string choice_digest(const TuningKey& key, std::string_view generator);

// A checked JSON file. kInvalidArgument when a config is no JSON object.
Result<std::string> format_choice(const ChoiceRecord& choice);

// kIo with what is wrong when the text is damaged or belongs to another digest.
Result<ChoiceRecord> parse_choice(std::string_view text, std::string_view digest);

}  // namespace hstujit
