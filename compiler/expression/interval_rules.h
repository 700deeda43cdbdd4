// How an operation's interval follows from its operands', once for numbers (evaluate.h) and for expressions
// (bounds.h). What an integer and a truth are, and how two are combined, `Domain` says:
//
//   Value                                                 an integer or a truth
//   Value integer(int64_t)
//   std::optional<int64_t> constant(Value)                what it is known to be
//   Value add, sub, mul, div, floor_div, max, min(Value, Value)
//   Value lt, le, gt, ge, both, either(Value, Value), negate(Value), select(Value condition, Value, Value)
//   std::optional<Ends> products, quotients, floor_quotients, remainders(Ends a, Ends b)
//                                                         where b is not known; nothing where there is no rule
//
// The interval of a truth is {whether it always holds, whether it may hold}.
#pragma once

#include <optional>

#include "compiler/expression/expression.h"

namespace hstujit {

template <typename Value>
struct Ends {
  Value low, high;
};

template <typename Domain>
class IntervalRules {
 public:
  using Value = typename Domain::Value;
  using Range = Ends<Value>;
  using Optional = std::optional<Range>;

  explicit IntervalRules(Domain& domain) : d_(domain) {}

  // Operands that the operator has not are passed over. Nothing where it has no rule for these operands.
  Optional apply(Operator op, const Range& a, const Range& b, const Range& c, bool boolean) {
    switch (op) {
      case Operator::kAdd:
        return Range{d_.add(a.low, b.low), d_.add(a.high, b.high)};
      case Operator::kSub:
        return Range{d_.sub(a.low, b.high), d_.sub(a.high, b.low)};
      case Operator::kMul:
        if (const auto factor = known(b)) return scaled(a, b, *factor);
        if (const auto factor = known(a)) return scaled(b, a, *factor);
        return d_.products(a, b);
      case Operator::kDiv:
        if (known(b).value_or(0) > 0) return Range{d_.div(a.low, b.low), d_.div(a.high, b.low)};
        return d_.quotients(a, b);
      case Operator::kFloorDiv:
        if (known(b).value_or(0) > 0) return Range{d_.floor_div(a.low, b.low), d_.floor_div(a.high, b.low)};
        return d_.floor_quotients(a, b);
      case Operator::kMod:
        return d_.remainders(a, b);
      case Operator::kMax:
        return Range{d_.max(a.low, b.low), d_.max(a.high, b.high)};
      case Operator::kMin:
        return Range{d_.min(a.low, b.low), d_.min(a.high, b.high)};
      case Operator::kAbs:
        return Range{d_.max(d_.max(a.low, negative(a.high)), d_.integer(0)), d_.max(negative(a.low), a.high)};
      case Operator::kEq:
        return equal(a, b);
      case Operator::kNe:
        return unequal(a, b);
      case Operator::kLt:
        return Range{d_.lt(a.high, b.low), d_.lt(a.low, b.high)};
      case Operator::kLe:
        return Range{d_.le(a.high, b.low), d_.le(a.low, b.high)};
      case Operator::kGt:
        return Range{d_.gt(a.low, b.high), d_.gt(a.high, b.low)};
      case Operator::kGe:
        return Range{d_.ge(a.low, b.high), d_.ge(a.high, b.low)};
      case Operator::kAnd:
        return Range{d_.both(a.low, b.low), d_.both(a.high, b.high)};
      case Operator::kOr:
        return Range{d_.either(a.low, b.low), d_.either(a.high, b.high)};
      case Operator::kNot:
        return Range{d_.negate(a.high), d_.negate(a.low)};
      case Operator::kSelect:
        return choice(a, b, c, boolean);
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<int64_t> known(const Range& of) {
    const std::optional<int64_t> low = d_.constant(of.low);
    return low && d_.constant(of.high) == low ? low : std::nullopt;
  }

  // The order in which values are made is that of the code that is printed.
  Range equal(const Range& a, const Range& b) {
    const Value not_above = d_.le(a.high, b.low), not_below = d_.ge(a.low, b.high);
    const Value always = d_.both(not_below, not_above);
    const Value reaches_up = d_.ge(a.high, b.low), reaches_down = d_.le(a.low, b.high);
    return {always, d_.both(reaches_down, reaches_up)};
  }

  Range unequal(const Range& a, const Range& b) {
    const Value below = d_.lt(a.high, b.low), above = d_.gt(a.low, b.high);
    const Value always = d_.either(above, below);
    const Value ends_above = d_.gt(a.high, b.low), begins_below = d_.lt(a.low, b.high);
    return {always, d_.either(begins_below, ends_above)};
  }

  Value negative(const Value& value) { return d_.sub(d_.integer(0), value); }

  Range scaled(const Range& a, const Range& by, int64_t factor) {
    const Value low = d_.mul(a.low, by.low), high = d_.mul(a.high, by.low);
    return factor >= 0 ? Range{low, high} : Range{high, low};
  }

  Range choice(const Range& condition, const Range& a, const Range& b, bool boolean) {
    const Value low = boolean ? d_.both(a.low, b.low) : d_.min(a.low, b.low);
    const Value high = boolean ? d_.either(a.high, b.high) : d_.max(a.high, b.high);
    return {d_.select(condition.low, a.low, d_.select(condition.high, low, b.low)),
            d_.select(condition.low, a.high, d_.select(condition.high, high, b.high))};
  }

  Domain& d_;
};

}  // namespace hstujit
