// The reference is that of hstu_attention, whose rows of q may be fewer.
#include "compiler/spec/operators/hstu_attention/attention_reference.h"

namespace hstujit {

const OperatorReference& reference_delta_hstu_attention() { return attention_reference(); }

}  // namespace hstujit
