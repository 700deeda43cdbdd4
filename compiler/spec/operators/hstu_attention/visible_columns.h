// Which columns of a sequence its rows see, from the mask's expression: for counts of pairs, tiles and work.
#pragma once

#include "compiler/expression/spans.h"
#include "compiler/spec/operators/hstu_attention/params.h"

namespace hstujit {

// Of one thread.
class VisibleColumns {
 public:
  // A sequence of n rows with t targets and, where the instance takes num_contexts, c contexts: 0 <= t, c <= n.
  VisibleColumns(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t c = 0);
  VisibleColumns(const VisibleColumns&) = delete;
  VisibleColumns& operator=(const VisibleColumns&) = delete;

  // Columns that some of the rows [first, last] see, ascending and apart. Holds until the next call.
  const std::vector<Span>& of(int64_t first, int64_t last);

 private:
  void find_cuts(int64_t first, int64_t last);

  int64_t rows_;
  Expression mask_;  // of row and column
  SpanSolver solver_;
  ExpressionEvaluator evaluator_;
  std::vector<int> kinds_;         // comparisons of rows alone, by node: together they tell the kinds of rows
  std::vector<bool> last_kind_;    // while cuts are looked for
  std::vector<int64_t> cuts_;      // rows that are of another kind than the one before
  std::vector<Span> all_, spans_;  // of rows of several kinds
};

}  // namespace hstujit
