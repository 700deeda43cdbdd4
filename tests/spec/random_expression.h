// Expressions of random operations, and the points at which they are looked at.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "compiler/expression/expression.h"

namespace hstujit {

inline constexpr int64_t kValues = 6;  // each number is in [0, kValues)

// Random expressions of numbers x, y, z and a flag, with every operator.
class RandomExpression {
 public:
  explicit RandomExpression(uint64_t seed) : random_(seed) {}

  Expression make() {
    numbers_ = {builder_.number("x"), builder_.number("y"), builder_.number("z"), builder_.integer(pick(7) - 3)};
    flags_ = {builder_.flag("flag"), builder_.truth(pick(2) == 0)};
    for (int i = 0; i < 14; ++i) add_node();
    return std::move(builder_).finish(builder_.both(flags_.back(), flags_[flags_.size() - 2]));
  }

 private:
  int64_t pick(int64_t below) { return std::uniform_int_distribution<int64_t>(0, below - 1)(random_); }
  Term number() { return numbers_[static_cast<size_t>(pick(static_cast<int64_t>(numbers_.size())))]; }
  Term flag() { return flags_[static_cast<size_t>(pick(static_cast<int64_t>(flags_.size())))]; }

  void add_node() {
    const Term a = number(), b = number(), p = flag(), q = flag();
    switch (pick(18)) {
      case 0:
        return numbers_.push_back(builder_.add(a, b));
      case 1:
        return numbers_.push_back(builder_.sub(a, b));
      case 2:
        return numbers_.push_back(builder_.mul(a, b));
      case 3:
        return numbers_.push_back(builder_.div(a, b));
      case 4:
        return numbers_.push_back(builder_.max(a, b));
      case 5:
        return numbers_.push_back(builder_.min(a, b));
      case 6:
        return numbers_.push_back(builder_.abs(a));
      case 7:
        return numbers_.push_back(builder_.select(p, a, b));
      case 8:
        return flags_.push_back(builder_.select(p, q, flag()));
      case 9:
        return flags_.push_back(builder_.both(p, q));
      case 10:
        return flags_.push_back(builder_.either(p, q));
      case 11:
        return flags_.push_back(builder_.negate(p));
      case 12:
        return flags_.push_back(builder_.eq(a, b));
      case 13:
        return flags_.push_back(builder_.lt(a, b));
      case 14:
        return flags_.push_back(builder_.le(a, b));
      case 15:
        return flags_.push_back(builder_.gt(a, b));
      default:
        return flags_.push_back(builder_.ge(a, b));
    }
  }

  std::mt19937_64 random_;
  ExpressionBuilder builder_;
  std::vector<Term> numbers_, flags_;
};

// Calls `check` with every (x, y, z, flag).
template <typename Check>
void at_every_point(const Check& check) {
  for (int64_t x = 0; x < kValues; ++x)
    for (int64_t y = 0; y < kValues; ++y)
      for (int64_t z = 0; z < kValues; ++z)
        for (const int64_t flag : {0, 1}) check(x, y, z, flag);
}

}  // namespace hstujit
