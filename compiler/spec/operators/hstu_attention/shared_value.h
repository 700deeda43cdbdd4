// The part of a score that is the same number for all heads of a pair: what is read of operands without an axis of
// heads, and what is computed of that and of places. CTAs of a cluster, each with another head, compute it once.
#pragma once

#include <optional>
#include <vector>

#include "compiler/expression/expression.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

inline constexpr const char* kSharedValue = "value";  // its symbol in the rest of the score

struct SplitScore {
  Expression value;  // depends on neither x nor the head
  Expression rest;   // the score with the real symbol kSharedValue in its place
};

// Splits off the part that takes the most instructions. Terms of one sum are one part, whatever order they have in it:
// silu(x + a[row - col] - b[row]) is silu(x + value), with a[row - col] - b[row]. Nothing where no part reads an
// operand, or all take few instructions.
std::optional<SplitScore> split_score(const Expression& score, const std::vector<Operand>& operands);

// The same of an instance's expression; nothing where it reads no operands.
std::optional<SplitScore> split_score(const HstuAttentionParams& params);

}  // namespace hstujit
