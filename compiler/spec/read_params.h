// The parameters of an operator that has no rules between them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "compiler/spec/fields_json.h"

namespace hstujit {

// Empty where there are mistakes, also where one is that a parameter stands there under another name: it is said
// before an operator is read, and what was meant is then neither there nor missed.
template <typename T>
std::optional<T> read_params(const Json& json, const std::string& path, Mistakes& mistakes) {
  const size_t before = mistakes.count();
  T params;
  read_fields(json, path, params, mistakes, {"op"});
  const FieldSlots slots = field_slots(params);
  const bool whole = std::none_of(slots.begin(), slots.end(), [&](const FieldSlot& slot) {
    return mistakes.expects(join_path(path, slot.rules.name));
  });
  if (!whole || mistakes.count() != before) return std::nullopt;
  return params;
}

}  // namespace hstujit
