// The skeletons of the attention operators: one for each operator and template. What an operator's own folder holds of
// a template is the name; see templates/delta_hstu_attention/.
#pragma once

#include <memory>
#include <string_view>

#include "compiler/plan/skeleton.h"

namespace hstujit {

// `op`: an operator whose spec is an AttentionSpec. The skeleton is named <op>/sm90 and its source begins with
// templates/<op>/sm90.cuh.
std::unique_ptr<Skeleton> make_attention_sm90(std::string_view op);
std::unique_ptr<Skeleton> make_attention_sm80(std::string_view op);

}  // namespace hstujit
