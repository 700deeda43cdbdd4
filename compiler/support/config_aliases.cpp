#include "compiler/support/config_aliases.h"

#include <string_view>

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

}  // namespace

Json with_current_names(Json config) {
  const auto skeleton = config.is_object() ? config.find("skeleton") : config.end();
  if (skeleton == config.end() || !skeleton->is_string()) return config;
  for (const Alias& alias : kSkeletons) {
    if (skeleton->get_ref<const std::string&>() == alias.earlier) {
      *skeleton = alias.name;
      break;
    }
  }
  return config;
}

}  // namespace hstujit
