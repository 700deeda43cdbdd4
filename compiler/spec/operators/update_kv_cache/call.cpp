#include "compiler/spec/call/declaration.h"

namespace hstujit {

CallDeclaration call_update_kv_cache() {
  return CallDeclaration()
      .size("heads", {})
      .size("attn_dim", {})
      .size("hidden_dim", {})
      .dtype("dtype", "k v")
      .dtype("offsets_dtype", "kv_caching_offsets delta_offsets")
      .alignment("alignment");
}

}  // namespace hstujit
