// Gradients of a program against differences of forward: that steps are wired as they should be. Each step's own
// gradient has its own tests, which are far closer.
#pragma once

#include <cmath>
#include <numeric>

#include "compiler/spec/program.h"
#include "compiler/spec/random.h"
#include "tests/operators/stu_layer/stu_specs.h"

namespace hstujit {

class StuGradient {
 public:
  explicit StuGradient(OpSpecPtr spec) : spec_(std::move(spec)) {
    forward_ = spec_->make_inputs(Direction::kForward, lengths_, 3);
    spec_->reference(Direction::kForward, lengths_, forward_);
    // The same call backward, with what forward gave, and gradients of its results.
    backward_ = spec_->make_inputs(Direction::kBackward, lengths_, 4);
    const Signature signature = spec_->signature(Direction::kBackward);
    for (size_t i = 0; i < signature.size(); ++i) {
      const int same = find_argument(spec_->signature(Direction::kForward), signature[i].name);
      if (signature[i].role == ArgumentRole::kInput && same >= 0) backward_[i] = forward_[static_cast<size_t>(same)];
    }
    spec_->reference(Direction::kBackward, lengths_, backward_);
  }

  // The results with a gradient, each times it.
  double loss() {
    spec_->reference(Direction::kForward, lengths_, forward_);
    double sum = 0;
    const Signature signature = spec_->signature(Direction::kForward);
    for (size_t i = 0; i < signature.size(); ++i) {
      if (signature[i].role != ArgumentRole::kOutput || !has_backward("d" + signature[i].name)) continue;
      const std::vector<double>& out = forward_[i].tensor.reals;
      sum += std::inner_product(out.begin(), out.end(), backward("d" + signature[i].name).tensor.reals.begin(), 0.0);
    }
    return sum;
  }

  // How far the slope of the loss along a random direction of that input is from what its gradient says, over what it
  // would be with each element of the same sign. Temporaries are rounded to 11 bits, so a step is large.
  double distance(const std::string& input) {
    std::vector<double>& elements =
        forward_[static_cast<size_t>(find_argument(spec_->signature(Direction::kForward), input))].tensor.reals;
    const std::vector<double>& gradient = backward("d" + input).tensor.reals;
    EXPECT_EQ(elements.size(), gradient.size()) << input;
    const std::vector<double> before = elements;
    std::vector<double> direction(elements.size());
    double along = 0, squares = 0;
    const double scale = std::sqrt(std::inner_product(before.begin(), before.end(), before.begin(), 0.01) /
                                   static_cast<double>(before.size()));
    for (size_t i = 0; i < elements.size(); ++i) {
      direction[i] = scale * random_normal(7, 1, i);
      along += direction[i] * gradient[i];
      squares += direction[i] * direction[i] * gradient[i] * gradient[i];
    }
    constexpr double kStep = 1.0 / 32;
    const auto at = [&](double step) {
      for (size_t i = 0; i < elements.size(); ++i) elements[i] = before[i] + step * direction[i];
      return loss();
    };
    const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
    elements = before;
    EXPECT_GT(squares, 0) << input;
    return std::abs(slope - along) / std::sqrt(squares);
  }

  bool has_backward(const std::string& name) const {
    return find_argument(spec_->signature(Direction::kBackward), name) >= 0;
  }
  HostValue& backward(const std::string& name) {
    return backward_[static_cast<size_t>(find_argument(spec_->signature(Direction::kBackward), name))];
  }

 private:
  OpSpecPtr spec_;
  Lengths lengths_{{5, 0, 3}, {}, 5, {}};
  std::vector<HostValue> forward_, backward_;
};

// `expected`: how many inputs have a gradient.
inline void expect_gradients(const OpSpecPtr& spec, int expected) {
  StuGradient gradient(spec);
  int compared = 0;
  for (const Argument& argument : spec->signature(Direction::kForward)) {
    if (argument.role != ArgumentRole::kInput || !gradient.has_backward("d" + argument.name)) continue;
    EXPECT_LT(gradient.distance(argument.name), 0.1) << key_text(*spec) << " " << argument.name;
    ++compared;
  }
  EXPECT_EQ(compared, expected);
}

}  // namespace hstujit
