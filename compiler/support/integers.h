// Division and rounding of integers by positive ones; what is rounded up or down is not negative.
#pragma once

namespace hstujit {

template <typename Integer>
constexpr Integer ceil_div(Integer value, Integer divisor) {
  return value / divisor + static_cast<Integer>(value % divisor > 0);  // value + divisor may be beyond Integer
}

template <typename Integer>
constexpr Integer round_up(Integer value, Integer multiple) {
  return ceil_div(value, multiple) * multiple;
}

template <typename Integer>
constexpr Integer round_down(Integer value, Integer multiple) {
  return value / multiple * multiple;
}

}  // namespace hstujit
