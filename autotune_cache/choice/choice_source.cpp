#include "autotune_cache/choice/choice_source.h"

#include <cstddef>
#include <iterator>

namespace hstujit {
namespace {

struct Source {
  ChoiceSource source;
  ChoiceKind kind;
  std::string_view name;
  std::string_view description;
};

// In the order of the enumeration.
constexpr Source kSources[] = {
    {ChoiceSource::kTuning, ChoiceKind::kTuned, "tuning", "the tuning database's winner"},
    {ChoiceSource::kNearDevice, ChoiceKind::kBorrowed, "near device", "the winner of the nearest device with a record"},
    {ChoiceSource::kOtherHeads, ChoiceKind::kBorrowed, "other heads", "the winner of another number of heads"},
    {ChoiceSource::kOtherSeed, ChoiceKind::kBorrowed, "other seed",
     "the winner of the instance whose seed is a number, without row_numbers"},
    {ChoiceSource::kOtherGradients, ChoiceKind::kBorrowed, "other gradients",
     "the winner of the instance that adds no gradients to others"},
    {ChoiceSource::kOtherBatches, ChoiceKind::kBorrowed, "other batches", "what the bucket's other batches had"},
    {ChoiceSource::kHeuristic, ChoiceKind::kEstimated, "heuristic", "the cost model's fastest estimate"},
    {ChoiceSource::kFrozen, ChoiceKind::kFrozen, "frozen", "frozen"},
    {ChoiceSource::kOverride, ChoiceKind::kOverride, "override", "HSTUJIT_OVERRIDE"},
};

constexpr bool is_in_order() {
  for (size_t i = 0; i < std::size(kSources); ++i) {
    if (static_cast<size_t>(kSources[i].source) != i) return false;
  }
  return true;
}
static_assert(is_in_order());

const Source& row_of(ChoiceSource source) { return kSources[static_cast<size_t>(source)]; }

}  // namespace

ChoiceKind kind_of(ChoiceSource source) { return row_of(source).kind; }

std::string_view to_string(ChoiceSource source) { return row_of(source).name; }

std::string_view description_of(ChoiceSource source) { return row_of(source).description; }

std::optional<ChoiceSource> parse_choice_source(std::string_view name) {
  for (const Source& row : kSources) {
    if (row.name == name) return row.source;
  }
  return std::nullopt;
}

}  // namespace hstujit
