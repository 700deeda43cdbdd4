#include "compiler/spec/operators/hstu_attention/call.h"

#include "compiler/spec/operators/hstu_attention/operands/call.h"

namespace hstujit {

CallDeclaration& attention_call(CallDeclaration& call) {
  return operand_call(call)
      .size("heads", {})
      .size("attn_dim", {})
      .size("hidden_dim", {})
      .dtype("offsets_dtype", "seq_offsets num_targets num_contexts")
      .alignment("alignment")
      .keywords(
          "precision causal target_group_size max_attn_len min_full_attn_seq_len contextual_seq_len sla_k1 sla_k2 "
          "full_mask mask score operands num_softmax_heads softmax_score")
      .differentiable("out")
      .usual("scaling_seqlen", 0);
}

CallDeclaration& attention_call_of_heads(CallDeclaration& call) {
  attention_call(call)
      .dtype("dtype", "q k v dout")
      .size("heads", {{"q k v dout", 1}})
      .size("attn_dim", {{"q k", 2}})
      .size("hidden_dim", {{"v dout", 2}})
      .gradients("q k v");
  return operand_tensors(call);
}

void call_hstu_attention(CallDeclaration& call) {
  attention_call_of_heads(call)
      .of_steps("adds_gradients")
      .presence("dropout", "dropout_ratio seed offset")
      .presence("seed_tensor", "seed_tensor", "seed", "dropout");
}

}  // namespace hstujit
