// Functions that follow from a condition, as expressions: where it holds over intervals of its symbols, for which
// values of a symbol it may hold, and its truth for 32 of them as a word. Kernels compute them once a tile
// (compiler/ir/mask_functions.h); they are sound for any condition, and constants in it fold.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/expression/expression.h"

namespace hstujit {

struct ExpressionFunction {
  Expression expression;
  std::vector<int> results;  // nodes
};

// That `symbol` is in [first, last], which are symbols of the function in its place.
struct SymbolRange {
  std::string_view symbol, first, last;
};

// Whether the condition always holds over the ranges, and whether it may hold somewhere in them.
ExpressionFunction derive_truths(const Expression& condition, std::span<const SymbolRange> ranges);

// The ends [low, high) of a part of [0, size) outside of which no value of `unknown` fulfils the condition, where
// another symbol is in a range. `size` is a symbol of the condition.
ExpressionFunction derive_range(const Expression& condition, std::string_view unknown, const SymbolRange& range,
                                std::string_view size);

// A word whose bit i is the condition where `unknown` is first + i; `first` is a symbol in its place. Nothing where an
// operation has no rule.
std::optional<ExpressionFunction> derive_word(const Expression& condition, std::string_view unknown,
                                              std::string_view first);

}  // namespace hstujit
