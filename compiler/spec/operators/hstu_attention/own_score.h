// Scores: HstuAttentionParams::score, a name or an expression.
#pragma once

#include <string>
#include <string_view>

#include "compiler/expression/expression.h"
#include "compiler/support/status.h"

namespace hstujit {

// Whether it is a name of kHstuScores.
bool is_named_score(std::string_view score);

// The expression of a name, or of a text in the words of docs/expressions.md: of x, which is alpha times the product,
// row, column, n, t, head, heads and alpha. Or what is wrong and at which column of the text.
Result<Expression> parse_score(std::string_view score);

// Brings texts that say the same in the same order to one, or to the name that says it: of a score that parse_score
// takes.
std::string canonical_score(std::string_view score);

// Whether a text reads where the pair is in its sequence, which the longest sequences have no numbers for.
bool score_reads_positions(std::string_view score);

// Whether a real number of a score is above 0, or NaN, whatever its symbols are; false where that does not follow from
// its form.
bool is_positive(const Expression& score, int node);

// Whether kernels may get infinities or NaN from it at rows that are not of the sequence.
bool score_is_finite(const Expression& score);

// Instructions of a text over those of silu, at least 1; 1 of a name.
double score_work(std::string_view score);

}  // namespace hstujit
