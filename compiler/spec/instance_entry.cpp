#include "compiler/spec/instance_entry.h"

#include <algorithm>

#include "compiler/spec/config.h"

namespace hstujit {

InstanceEntry::Members InstanceEntry::defaults_of(const Json& defaults) {
  Members members;
  for (const auto& [name, value] : defaults.get_ref<const Json::object_t&>()) {
    if (name != "name" && is_entry_field("", name)) members.push_back({name, &value, true});
  }
  return members;
}

InstanceEntry::InstanceEntry(const Json& own, const Members& defaults) : own_(&own) {
  if (!own.is_object()) return;
  for (const auto& [name, value] : own.get_ref<const Json::object_t&>()) members_.push_back({name, &value, false});
  const auto inherit = [&](const Member& member) {
    if (find(member.name) == nullptr) members_.push_back(member);
  };
  // The operator first: it says which of the others are its own.
  for (const Member& member : defaults) {
    if (member.name == "op") inherit(member);
  }
  const std::string known_to = op();
  for (const Member& member : defaults) {
    if (is_entry_field(known_to, member.name)) inherit(member);
  }
}

const InstanceEntry::Member* InstanceEntry::member(std::string_view name) const {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const Member& member) { return member.name == name; });
  return found == members_.end() ? nullptr : &*found;
}

const Json* InstanceEntry::find(std::string_view name) const {
  const Member* const found = member(name);
  return found == nullptr ? nullptr : found->value;
}

bool InstanceEntry::inherits(std::string_view name) const {
  const Member* const found = member(name);
  return found != nullptr && found->inherited;
}

std::string InstanceEntry::op() const {
  const Json* const op = find("op");
  return op != nullptr && op->is_string() ? op->get<std::string>() : std::string();
}

}  // namespace hstujit
