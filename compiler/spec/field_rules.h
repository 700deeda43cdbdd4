// Rules between fields of an object of which some fields are wrong.
#pragma once

#include <functional>
#include <string>

#include "compiler/spec/fields_json.h"

namespace hstujit {

// Adds what breaks the rules between the fields of `slots` to `mistakes`, which has what is wrong with single fields
// since there were `before` of them. A wrong field has any of its values then: what is added is so whatever it is.
// `check` looks at the object of the slots, and adds sentences. Whether no field is wrong: else the object has any
// values, and is good for nothing.
bool check_rules_between(const FieldSlots& slots, const std::string& path, size_t before, Mistakes& mistakes,
                         const std::function<void(Mistakes&)>& check);

}  // namespace hstujit
