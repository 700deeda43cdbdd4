// Scores: HstuAttentionParams::score, a name or an expression.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/expression/expression.h"
#include "compiler/spec/operators/hstu_attention/operands/operand.h"
#include "compiler/spec/operators/hstu_attention/params.h"
#include "compiler/support/status.h"

namespace hstujit {

// Whether it is a name of kHstuScores.
bool is_named_score(std::string_view score);

// Whether a text may not name an operand so, since it is the name of something else.
bool is_score_word(std::string_view word);

// The expression of a name, or of a text in the words of docs/expressions.md: of x, which is alpha times the product,
// row, col, n, targets, head, heads, alpha and the operands. Or what is wrong and at which column of the text.
Result<Expression> parse_score(std::string_view score, const std::vector<Operand>& operands = {});

// The expression of an instance: its score, and in heads with softmax what these normalise, where a text says that.
Result<Expression> parse_score(const HstuAttentionParams& params);

// Brings texts that say the same in the same order to one, or to the name that says it: of a score that parse_score
// takes.
std::string canonical_score(std::string_view score, const std::vector<Operand>& operands = {});

// The same of what heads with softmax normalise: empty where that is x.
std::string canonical_softmax_score(std::string_view score, const std::vector<Operand>& operands = {});

// Whether a text reads where the pair is in its sequence, which the longest sequences have no numbers for.
bool score_reads_positions(const HstuAttentionParams& params);

// Whether a real number of a score is above 0, or NaN, whatever its symbols are; false where that does not follow from
// its form.
bool is_positive(const Expression& score, int node);

// Whether kernels may get infinities or NaN from it at pairs that are not of the sequence.
bool score_is_finite(const Expression& score);

// Instructions that a kernel has for a node of a score, without those for what it is made of.
double score_instructions(const Expression& score, int node);

// Instructions of the instance's expression over those of silu, at least 1; 1 where all that it says is a name.
double score_work(const HstuAttentionParams& params);
double score_work(const Expression& score);

}  // namespace hstujit
