#include "compiler/support/config_aliases.h"

#include <string>
#include <string_view>
#include <utility>

#include "compiler/support/json.h"

namespace hstujit {
namespace {

struct Alias {
  std::string_view earlier;
  std::string_view name;
};

constexpr Alias kSkeletons[] = {
    {"hstu_attention/sm80", "attention/sm80_forward"},
    {"hstu_attention/sm80_backward", "attention/sm80_backward"},
    {"hstu_attention/sm90", "attention/sm90_forward"},
    {"hstu_attention/sm90_backward", "attention/sm90_backward_twopass"},
    {"hstu_attention/sm90_backward_fused", "attention/sm90_backward_fused"},
    {"delta_hstu_attention/sm80", "attention/sm80_forward"},
    {"delta_hstu_attention/sm90", "attention/sm90_forward"},
};

constexpr Alias kFields[] = {{"share_columns", "split_kv"}};

constexpr Alias kSchedules[] = {{"ordered", "semaphore"}, {"whole", "per_sequence"}};

template <size_t kCount>
std::string_view current_name(std::string_view name, const Alias (&aliases)[kCount]) {
  for (const Alias& alias : aliases) {
    if (alias.earlier == name) return alias.name;
  }
  return name;
}

template <size_t kCount>
void rename_value(Json& config, const char* field, const Alias (&aliases)[kCount]) {
  const auto found = config.find(field);
  if (found == config.end() || !found->is_string()) return;
  *found = std::string(current_name(found->get_ref<const std::string&>(), aliases));
}

}  // namespace

Json with_current_names(Json config) {
  if (!config.is_object()) return config;
  Json renamed = Json::object();
  // The object itself would look through all of its members before it takes another.
  auto& members = renamed.get_ref<Json::object_t&>();
  for (auto& [name, value] : config.get_ref<Json::object_t&>()) {
    const std::string current(current_name(name, kFields));
    // A field that is given by both names keeps the earlier one, which readers refuse.
    const bool stays = current == name || config.contains(current);
    members.emplace_back(stays ? name : current, std::move(value));
  }
  rename_value(renamed, "skeleton", kSkeletons);
  rename_value(renamed, "schedule", kSchedules);
  return renamed;
}

}  // namespace hstujit
