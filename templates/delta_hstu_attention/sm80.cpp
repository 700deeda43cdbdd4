#include "templates/hstu_attention/skeletons.h"

namespace hstujit {

const Skeleton& delta_hstu_attention_sm80_skeleton() {
  static const auto skeleton = make_attention_sm80("delta_hstu_attention");
  return *skeleton;
}

}  // namespace hstujit
