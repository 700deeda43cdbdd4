// Canonical forms of hstu.reduce and hstu.splat.
#pragma once

#include "mlir/IR/PatternMatch.h"

namespace hstujit::hstu {

void add_reduce_patterns(mlir::RewritePatternSet& patterns);
void add_splat_patterns(mlir::RewritePatternSet& patterns);

}  // namespace hstujit::hstu
