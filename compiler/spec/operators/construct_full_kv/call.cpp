#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_construct_full_kv(CallDeclaration& call) {
  call.size("heads", {})
      .size("attn_dim", {})
      .size("hidden_dim", {})
      .dtype("dtype", "k_cache delta_k v_cache delta_v")
      .dtype("offsets_dtype", "kv_caching_offsets")
      .alignment("alignment");
}

}  // namespace hstujit
