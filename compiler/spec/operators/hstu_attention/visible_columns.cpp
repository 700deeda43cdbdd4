#include "compiler/spec/operators/hstu_attention/visible_columns.h"

#include <algorithm>

#include "compiler/spec/operators/hstu_attention/bound_mask.h"

namespace hstujit {

namespace {

constexpr std::string_view kRowSymbol = "row", kColumnSymbol = "column";

}  // namespace

VisibleColumns::VisibleColumns(const HstuAttentionParams& params, int64_t n, int64_t t, int64_t c)
    : rows_(n), mask_(bound_mask(params, n, t, c)), solver_(mask_, mask_.symbol(kColumnSymbol)), evaluator_(mask_) {
  const std::vector<bool> of_rows = mask_.users_of(mask_.symbol(kRowSymbol));
  const std::vector<bool> of_columns = mask_.users_of(mask_.symbol(kColumnSymbol));
  for (size_t i = 0; i < mask_.nodes().size(); ++i) {
    const Operator op = mask_.nodes()[i].op;
    const bool comparison = op == Operator::kEq || op == Operator::kLt || op == Operator::kLe;
    if (comparison && of_rows[i] && !of_columns[i]) kinds_.push_back(static_cast<int>(i));
  }
  if (!kinds_.empty() && n > 0) find_cuts(0, n - 1);
}

// Rows of one kind have the same answers to all comparisons of rows alone.
void VisibleColumns::find_cuts(int64_t first, int64_t last) {
  const Interval values[] = {{first, last}, {0, rows_ - 1}};
  evaluator_.over(values);
  const bool one_kind =
      std::all_of(kinds_.begin(), kinds_.end(), [&](int node) { return evaluator_.interval_of(node).is_point(); });
  if (!one_kind) {
    const int64_t middle = first + (last - first) / 2;
    find_cuts(first, middle);
    find_cuts(middle + 1, last);
    return;
  }
  std::vector<bool> kind;
  for (const int node : kinds_) kind.push_back(evaluator_.interval_of(node).low != 0);
  if (first > 0 && kind != last_kind_) cuts_.push_back(first);
  last_kind_ = std::move(kind);
}

const std::vector<Span>& VisibleColumns::of(int64_t first, int64_t last) {
  const auto solve = [&](int64_t from, int64_t to) -> const std::vector<Span>& {
    const Interval values[] = {{from, to}, {0, rows_ - 1}};
    return solver_.solve(values, 0, rows_ - 1);
  };
  auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), first);
  if (cut == cuts_.end() || *cut > last) return solve(first, last);

  all_.clear();
  for (int64_t from = first; from <= last; ++cut) {
    const int64_t to = cut == cuts_.end() ? last : std::min(last, *cut - 1);
    const std::vector<Span>& spans = solve(from, to);
    all_.insert(all_.end(), spans.begin(), spans.end());
    from = to + 1;
    if (cut == cuts_.end()) break;
  }
  std::sort(all_.begin(), all_.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  spans_.clear();
  for (const Span& span : all_) {
    if (!spans_.empty() && span.begin <= spans_.back().end) {
      spans_.back().end = std::max(spans_.back().end, span.end);
    } else {
      spans_.push_back(span);
    }
  }
  return spans_;
}

}  // namespace hstujit
