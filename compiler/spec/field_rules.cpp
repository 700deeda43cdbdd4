#include "compiler/spec/field_rules.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "compiler/support/text.h"

namespace hstujit {

namespace {

// With more there is too much to try: then nothing is said of rules.
constexpr size_t kMostTrials = 256;

// Values on either side of whatever a rule may ask about a field.
std::vector<Json> values_of(const FieldSlot& slot) {
  const FieldRules& rules = slot.rules;
  const Json initial = slot.write(slot.value);
  if (initial.is_boolean()) return {false, true};
  std::vector<Json> values;
  for (const std::string& choice : split(rules.choices, ' '))
    if (!choice.empty()) values.push_back(initial.is_number_integer() ? Json(std::stoll(choice)) : Json(choice));
  if (!values.empty() || !initial.is_number()) return values;
  for (const int64_t value : {rules.min, rules.min + 1, rules.min + 2, rules.max})
    if (value <= rules.max) values.emplace_back(value);
  return values;
}

struct WrongField {
  const FieldSlot* slot;
  std::vector<Json> values;
};

bool is_wrong(const std::string& place, size_t before, Mistakes& mistakes) {
  const std::vector<Mistake>& kept = mistakes.kept();
  return mistakes.expects(place) ||
         std::any_of(kept.begin() + static_cast<std::ptrdiff_t>(std::min(before, kept.size())), kept.end(),
                     [&](const Mistake& mistake) { return mistake.path == place; });
}

}  // namespace

bool check_rules_between(const FieldSlots& slots, const std::string& path, size_t before, Mistakes& mistakes,
                         const std::function<void(Mistakes&)>& check) {
  if (mistakes.full()) return false;
  std::vector<WrongField> wrong;
  size_t trials = 1;
  for (const FieldSlot& slot : slots) {
    const std::string place = join_path(path, slot.rules.name);
    if (!is_wrong(place, before, mistakes)) continue;
    wrong.push_back({&slot, values_of(slot)});
    trials *= std::max<size_t>(1, wrong.back().values.size());
    if (trials > kMostTrials) return false;
  }
  Mistakes always;
  for (size_t trial = 0; trial < trials; ++trial) {
    size_t rest = trial;
    for (const WrongField& field : wrong) {
      if (field.values.empty()) continue;
      const FieldSlot& slot = *field.slot;
      (void)slot.read(field.values[rest % field.values.size()], slot.rules, path, slot.value);
      rest /= field.values.size();
    }
    Mistakes found;
    check(found);
    if (trial == 0) {
      always = std::move(found);
      continue;
    }
    std::set<std::string> sentences;
    for (const Mistake& mistake : found.kept()) sentences.insert(mistake.status.message());
    std::erase_if(always.kept(), [&](const Mistake& mistake) { return !sentences.contains(mistake.status.message()); });
  }
  mistakes.add(std::move(always));
  return wrong.empty();
}

}  // namespace hstujit
