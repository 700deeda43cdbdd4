// Gradients of the reference of attention as slopes of its forward direction.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "compiler/spec/operators/hstu_attention/attention_spec.h"
#include "compiler/support/text.h"
#include "tests/support/sanitized.h"

namespace hstujit {

inline HostValue& argument(const OpSpec& spec, std::vector<HostValue>& values, std::string_view name,
                           Direction direction = Direction::kForward) {
  return values[static_cast<size_t>(find_argument(spec.signature(direction), name))];
}

// The sum over out * dout of the forward reference at the inputs of a backward call, of which its results are the
// gradients. `values` are of a forward call and are overwritten.
inline double loss(const OpSpec& spec, const Lengths& lengths, std::vector<HostValue>& backward,
                   std::vector<HostValue>& values) {
  for (const Argument& input : spec.signature(Direction::kForward)) {
    if (input.role == ArgumentRole::kInput)
      argument(spec, values, input.name) = argument(spec, backward, input.name, Direction::kBackward);
  }
  spec.reference(Direction::kForward, lengths, values);
  const auto& out = argument(spec, values, "out").tensor.reals;
  const auto& dout = argument(spec, backward, "dout", Direction::kBackward).tensor.reals;
  return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
}

// Compares every gradient that the instance has with the slopes of loss().
inline void expect_slopes_of(const AttentionSpec& spec, const Lengths& lengths) {
  constexpr double kStep = 1e-5;
  auto values = spec.make_inputs(Direction::kBackward, lengths, 5);
  argument(spec, values, "scaling_seqlen", Direction::kBackward).scalar = 3;
  spec.reference(Direction::kBackward, lengths, values);
  auto forward = spec.make_inputs(Direction::kForward, lengths, 1);
  std::vector<std::pair<std::string, std::string>> gradients = {{"q", "dq"}, {"k", "dk"}, {"v", "dv"}};
  for (const Operand& operand : spec.operands()) {
    if (operand.gradient) gradients.emplace_back(operand.name, operand.gradient_name());
  }
  for (const auto& [of, name] : gradients) {
    auto& inputs = argument(spec, values, of, Direction::kBackward).tensor.reals;
    const HostTensor& gradient = argument(spec, values, name, Direction::kBackward).tensor;
    EXPECT_EQ(gradient.shape, argument(spec, values, of, Direction::kBackward).tensor.shape);
    ASSERT_EQ(gradient.reals.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double at = inputs[i];
      inputs[i] = at + kStep;
      const double above = loss(spec, lengths, values, forward);
      inputs[i] = at - kStep;
      const double below = loss(spec, lengths, values, forward);
      inputs[i] = at;
      ASSERT_NEAR(gradient.reals[i], (above - below) / (2 * kStep), 1e-7)
          << spec.to_json().dump() << " " << name << "[" << i << "]";
    }
  }
}

// The same with every score.
template <class Spec, class Params>
void expect_slopes(Params params, const Lengths& lengths) {
  for (const std::string& score : split(kHstuScores, ' ')) {
    if (kSanitized && score != "silu") continue;  // which takes minutes otherwise
    params.score = score;
    expect_slopes_of(Spec(params), lengths);
  }
}

}  // namespace hstujit
