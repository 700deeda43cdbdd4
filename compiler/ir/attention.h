// The IR of every operator whose spec is an AttentionSpec: which rows q has is no matter of mask and score.
#pragma once

#include "compiler/ir/build.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

Result<Module> build_attention(mlir::MLIRContext& context, const HstuAttentionParams& params);

}  // namespace hstujit
