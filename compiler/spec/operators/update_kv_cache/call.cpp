#include "compiler/spec/call/declaration.h"

namespace hstujit {

void call_update_kv_cache(CallDeclaration& call) {
  call.size("heads", {})
      .size("attn_dim", {})
      .size("hidden_dim", {})
      .dtype("dtype", "k v")
      .dtype("offsets_dtype", "kv_caching_offsets delta_offsets")
      .alignment("alignment");
}

}  // namespace hstujit
