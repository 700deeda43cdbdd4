// Division and rounding of integers that are not negative, by positive ones.
#pragma once

namespace hstujit {

template <typename Integer>
constexpr Integer ceil_div(Integer value, Integer divisor) {
  return (value + divisor - 1) / divisor;
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
