// Where the config of a choice comes from.
#pragma once

#include <optional>
#include <string_view>

namespace hstujit {

// In the order in which they decide, but that a note of an earlier look-up comes before an estimate.
enum class ChoiceKind {
  kOverride,   // HSTUJIT_OVERRIDE over one of the others: of this process alone
  kFrozen,     // HSTUJIT_FROZEN
  kTuned,      // the winner of a tuning record of the key
  kBorrowed,   // the winner of another key
  kEstimated,  // the cost model's
};

// The names stand in files and in reports (docs/reports.md).
enum class ChoiceSource {
  kTuning,          // "tuning"
  kNearDevice,      // "near device": the winner of another device
  kOtherHeads,      // "other heads": the winner of the same instance with another number of heads
  kOtherSeed,       // "other seed": of the same instance whose seed is a number of the launch, without row_numbers
  kOtherGradients,  // "other gradients": of the same instance that adds no gradients to others
  kOtherBatches,    // "other batches": what the bucket's other batches have (batch_class.h)
  kHeuristic,       // "heuristic"
  kFrozen,          // "frozen"
  kOverride,        // "override"
};

ChoiceKind kind_of(ChoiceSource source);
std::string_view to_string(ChoiceSource source);
std::optional<ChoiceSource> parse_choice_source(std::string_view name);
// The same for a sentence: "the winner of another number of heads".
std::string_view description_of(ChoiceSource source);

// Whether a tuning record of the key would be better.
inline bool is_guess(ChoiceSource source) {
  return kind_of(source) == ChoiceKind::kBorrowed || kind_of(source) == ChoiceKind::kEstimated;
}

}  // namespace hstujit
