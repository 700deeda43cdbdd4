// The IR of every operator whose spec is an AttentionSpec: which rows q has is no matter of mask and score.
#pragma once

#include "compiler/ir/build.h"
#include "compiler/ir/scores.h"
#include "compiler/spec/operators/hstu_attention/attention_spec.h"

namespace hstujit {

// With the score that the parameters name, or with `score`.
Result<Module> build_attention(mlir::MLIRContext& context, const AttentionSpec& spec, const ScoreBuilder& score = {});

}  // namespace hstujit
