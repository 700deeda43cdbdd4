#include "compiler/expression/spans.h"

#include <algorithm>

namespace hstujit {

namespace {

constexpr size_t kMaxSplits = 4;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// Where slope * x + rest <= 0 in the piece.
Span at_most_zero(int64_t slope, int64_t rest, const Span& piece) {
  if (slope == 0) return rest <= 0 ? piece : Span{piece.begin, piece.begin};
  if (slope == 1) return {piece.begin, std::min(piece.end, 1 - rest)};
  if (slope == -1) return {std::max(piece.begin, rest), piece.end};
  if (slope > 0) return {piece.begin, std::min(piece.end, floor_div(-rest, slope) + 1)};
  return {std::max(piece.begin, -floor_div(-rest, -slope)), piece.end};
}

}  // namespace

const std::vector<Span>& SpanSolver::solve(std::span<const Interval> values, int64_t first, int64_t last) {
  spans_.clear();
  int64_t begin = first;
  for (size_t i = 0; i < splits_.size(); ++i) {  // of which more may be found meanwhile
    const int64_t split = splits_[i];
    if (split <= begin || split > last) continue;
    solve_piece(values, {begin, split});
    begin = split;
  }
  if (begin <= last) solve_piece(values, {begin, last + 1});
  return spans_;
}

void SpanSolver::solve_piece(std::span<const Interval> values, const Span& piece) {
  split_.reset();
  size_t place = 0;
  for (const Expression::Node& node : expression_.nodes()) evaluate(node, values, piece, values_[place++]);
  if (split_) {
    const int64_t split = *split_;
    if (bend_ && splits_.size() < kMaxSplits)
      splits_.insert(std::upper_bound(splits_.begin(), splits_.end(), split), split);
    solve_piece(values, {piece.begin, split});
    solve_piece(values, {split, piece.end});
    return;
  }
  const Set& set = values_[static_cast<size_t>(expression_.root())].set;
  for (size_t i = 0; i < set.size(); ++i) {
    const Span span = set[i];
    if (!spans_.empty() && span.begin <= spans_.back().end) {
      spans_.back().end = std::max(spans_.back().end, span.end);
    } else {
      spans_.push_back(span);
    }
  }
}

void SpanSolver::evaluate(const Expression::Node& node, std::span<const Interval> values, const Span& piece,
                          Value& value) {
  if (!node.boolean) {
    if (node.op == Operator::kConstant) {
      value.line = {0, {node.value, node.value}};
    } else if (node.op == Operator::kSymbol) {
      value.line = node.value == symbol_ ? Line{1, {0, 0}} : Line{0, values[static_cast<size_t>(node.value)]};
    } else {
      value.line = combine(node, piece);
    }
    return;
  }
  Set& set = value.set;
  set.clear();
  switch (node.op) {
    case Operator::kConstant:
      if (node.value != 0) set.add(piece.begin, piece.end);
      break;
    case Operator::kSymbol:
      if (values[static_cast<size_t>(node.value)].high != 0) set.add(piece.begin, piece.end);
      break;
    case Operator::kEq:
    case Operator::kLt:
    case Operator::kLe: {
      const Line &a = operand(node, 0).line, &b = operand(node, 1).line;
      const int64_t slope = a.slope - b.slope;
      const int64_t low = a.rest.low - b.rest.high, high = a.rest.high - b.rest.low;
      Span span = at_most_zero(slope, node.op == Operator::kLt ? low + 1 : low, piece);
      if (node.op == Operator::kEq) {
        const Span above = at_most_zero(-slope, -high, piece);
        span = {std::max(span.begin, above.begin), std::min(span.end, above.end)};
      }
      set.add(span.begin, span.end);
      break;
    }
    case Operator::kAnd: {
      const Set &a = operand(node, 0).set, &b = operand(node, 1).set;
      for (size_t i = 0; i < a.size(); ++i) {
        for (size_t j = 0; j < b.size(); ++j) {
          set.add(std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end));
        }
      }
      break;
    }
    case Operator::kOr: {
      const Set &a = operand(node, 0).set, &b = operand(node, 1).set;
      for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
        const bool of_a = j == b.size() || (i < a.size() && a[i].begin <= b[j].begin);
        const Span span = of_a ? a[i++] : b[j++];
        set.add(span.begin, span.end);
      }
      break;
    }
    default:  // a negated symbol
      set.add(piece.begin, piece.end);
      break;
  }
}

SpanSolver::Line SpanSolver::combine(const Expression::Node& node, const Span& piece) {
  const auto range = [&](const Line& line) -> Interval {
    const int64_t ends[] = {line.slope * piece.begin, line.slope * (piece.end - 1)};
    return {line.rest.low + std::min(ends[0], ends[1]), line.rest.high + std::max(ends[0], ends[1])};
  };
  const Line& a = operand(node, 0).line;
  if (node.op == Operator::kAbs) return magnitude(a, piece);
  const Line& b = operand(node, 1).line;
  switch (node.op) {
    case Operator::kAdd:
    case Operator::kSub:
      return {node.op == Operator::kAdd ? a.slope + b.slope : a.slope - b.slope,
              evaluate_interval(node.op, a.rest, b.rest, {})};
    case Operator::kMul:
      if (a.slope == 0 && a.rest.is_point())
        return {a.rest.low * b.slope, evaluate_interval(node.op, a.rest, b.rest, {})};
      if (b.slope == 0 && b.rest.is_point())
        return {b.rest.low * a.slope, evaluate_interval(node.op, a.rest, b.rest, {})};
      break;
    case Operator::kMax:
    case Operator::kMin:
      return extreme(node.op, a, b, piece);
    case Operator::kSelect: {
      const Interval x = range(b), y = range(operand(node, 2).line);
      return {0, {std::min(x.low, y.low), std::max(x.high, y.high)}};
    }
    default:
      break;
  }
  return {0, evaluate_interval(node.op, range(a), range(b), {})};
}

SpanSolver::Line SpanSolver::extreme(Operator op, const Line& a, const Line& b, const Span& piece) {
  if (a.slope == b.slope) return {a.slope, evaluate_interval(op, a.rest, b.rest, {})};
  // a - b at both ends of the piece
  const int64_t slope = a.slope - b.slope, first = slope * piece.begin, last = slope * (piece.end - 1);
  const int64_t low = std::min(first, last) + a.rest.low - b.rest.high;
  const int64_t high = std::max(first, last) + a.rest.high - b.rest.low;
  if (low >= 0) return op == Operator::kMax ? a : b;
  if (high <= 0) return op == Operator::kMax ? b : a;
  if (piece.end - piece.begin > 1) {
    if (split_) return a;  // which another line has asked for
    // Where they cross if they do at one place, else in the middle.
    bend_ = a.rest.is_point() && b.rest.is_point();
    split_ = bend_ ? floor_div(b.rest.low - a.rest.low, slope) + 1 : piece.begin + (piece.end - piece.begin) / 2;
    return a;
  }
  const auto at = [&](const Line& line) -> Interval {
    return {line.slope * piece.begin + line.rest.low, line.slope * piece.begin + line.rest.high};
  };
  return {0, evaluate_interval(op, at(a), at(b), {})};
}

SpanSolver::Line SpanSolver::magnitude(const Line& a, const Span& piece) {
  const Line negated = {-a.slope, {-a.rest.high, -a.rest.low}};
  return extreme(Operator::kMax, a, negated, piece);
}

}  // namespace hstujit
