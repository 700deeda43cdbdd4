// Fields of a config about operands of attention, which follow the operator's own.
#pragma once

#include <string_view>
#include <tuple>

#include "compiler/spec/fields.h"

namespace hstujit {

// What the tensor attn_scale has a factor for: there is none, every row of q, all of them together.
inline constexpr std::string_view kAttnScales = "none rows scalar";

inline constexpr std::string_view kAddsGradientsDoc =
    "backward takes drab_before and dattn_scale_before, and adds drab and dattn_scale to them: a sum over layers that "
    "share rab or attn_scale";

// The fields of Params, which has members of these names.
template <typename Params>
constexpr auto operand_fields() {
  return std::make_tuple(
      field("rab_heads", &Params::rab_heads,
            "launches take a relative bias rab with this many heads, a divisor of heads; 0: none", 0, 1024),
      field("attn_scale", &Params::attn_scale,
            "launches take attn_scale in place of the scale, with a factor for these")
          .one_of(kAttnScales),
      field("drab", &Params::drab, "backward returns the gradient of rab"),
      field("dattn_scale", &Params::dattn_scale, "backward returns the gradient of attn_scale"));
}

}  // namespace hstujit
