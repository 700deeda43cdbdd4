#include "compiler/ir/attention.h"

namespace hstujit {

Result<Module> build_delta_hstu_attention(mlir::MLIRContext& context, const OpSpec& spec) {
  return build_attention(context, static_cast<const AttentionSpec&>(spec));
}

}  // namespace hstujit
