#include "compiler/spec/operators/hstu_attention/call.h"

#include "compiler/spec/operators/hstu_attention/operands/call.h"
#include "compiler/spec/operators/stu_layer/call.h"

namespace hstujit {

void call_cached_stu_layer(CallDeclaration& call) {
  attention_call(call);
  declare_stu(call);
  declare_stu_variant(call);
  call.dtype("dtype", "x uvqk_weight uvqk_bias output_weight k_cache v_cache")
      .dtype("offsets_dtype", "kv_caching_offsets seq_offsets num_targets num_contexts")
      .presence("uvqk_bias", "uvqk_bias")
      .keywords("alignment group_norm concat_u concat_x")
      .letter("P", "uvqk_weight", -1)
      .letter("Y", "output_weight", -2);
  operand_tensors(call);
}

}  // namespace hstujit
