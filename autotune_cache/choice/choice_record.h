// Which config a key gets, as a look-up has chosen it: one file for a key and a generator.
//
// The machine that prepares or prewarms a key notes its choice. There the note counts after all records, where the cost
// model would be asked: the estimates that were passed over, since their kernels spill, need not be compiled again. A
// bundle takes it along as an exported choice, and that decides: whatever records and cost model the other machine has,
// it runs the kernel that the bundle has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autotune_cache/choice/choice_source.h"
#include "autotune_cache/records/tuning_record.h"
#include "compiler/support/status.h"

namespace hstujit {

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
