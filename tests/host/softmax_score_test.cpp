// What heads with softmax normalise, on the host: against the float64 reference, and gradients of what it reads against
// differences of its own results.
#include <gtest/gtest.h>

#include "tests/host/attention_cases.h"
#include "tests/host/host_call.h"

namespace hstujit {
namespace {

const Json kReads = {
    {"heads", 4},
    {"operands",
     "t: row(grad), w: row(heads, grad), by: table(99, heads=2, grad), slope: head(grad), g: scalar(grad), own: "
     "sequence(grad), rel: pair(heads, grad)"},
    {"softmax_score",
     "g * x + t[row] * t[col] + w[col] + by[row - col + 40] - 0.05 * slope * (row - col) + own * tanh(x) + rel[row, "
     "col]"}};

Json softmax_json(const Json& changes) {
  return with(with(base_spec(), {{"attn_dim", 16}, {"hidden_dim", 24}, {"num_softmax_heads", 1}}), changes);
}

void expect_agreement(const Json& changes, Direction direction) {
  const Json json = softmax_json(changes);
  SCOPED_TRACE(json.dump());
  const Lengths lengths{
      .rows = {0, 1, 5, 129, 0, 33, 257, 3}, .num_targets = {0, 1, 2, 100, 0, 33, 9, 1}, .max_seq_len = 261};
  const OpSpecPtr spec = make_spec(json);
  const HostHandle handle(*spec, 2, direction);
  ASSERT_NE(handle.get(), nullptr) << handle.error();
  HostCall call(spec, lengths, 7, 0, direction);
  ASSERT_EQ(call.launch(handle), 0) << call.error();
  EXPECT_EQ(call.mistakes(), "");
}

TEST(HostSoftmaxScore, AgreesWithTheReference) {
  const Json cap = {{"softmax_score", "4.0 * tanh(x / 4.0)"}};
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    expect_agreement(cap, direction);
    expect_agreement(with(cap, {{"mask", "col < row and row - col > 40"}, {"num_softmax_heads", 2}}), direction);
    expect_agreement(with(cap, {{"num_targets", true}, {"rab_heads", 1}, {"attn_scale", "rows"}}), direction);
    for (const int64_t heads : {1, 4}) {
      expect_agreement(with(kReads, {{"num_softmax_heads", heads}, {"attn_scale", "scalar"}}), direction);
      expect_agreement(with(kReads, {{"num_softmax_heads", heads}, {"dropout", true}, {"rab_heads", 2}}), direction);
    }
    const Json beside = {{"heads", 3},
                         {"operands", "t: row(grad), by: table(99, grad), own: sequence(grad), rel: pair(grad)"},
                         {"score", "silu(x + t[row] - t[col] + by[row - col + 40]) * own + 0.1 * rel[row, col]"}};
    expect_agreement(with(beside, {{"attn_scale", "rows"}, {"dropout", true}}), direction);
    expect_agreement(with(beside, {{"num_softmax_heads", 2}, {"softmax_score", "x * t[col] - rel[row, col] * own"}}),
                     direction);
  }
}

// The loss is the sum of dout times out; results are fp32, so steps are wide and a score without bends is needed.
TEST(HostSoftmaxScore, GradientsAreDifferencesOfTheLoss) {
  const Json json = softmax_json(with(kReads, {{"num_softmax_heads", 3}, {"dtype", "fp32"}}));
  const Lengths lengths{.rows = {1, 0, 13, 6}, .num_targets = {}, .max_seq_len = 13};
  const OpSpecPtr spec = make_spec(json);
  const HostHandle forward(*spec, 2, Direction::kForward), backward(*spec, 2, Direction::kBackward);
  ASSERT_NE(forward.get(), nullptr) << forward.error();
  ASSERT_NE(backward.get(), nullptr) << backward.error();
  HostCall gradients(spec, lengths, 7, 0, Direction::kBackward), call(spec, lengths, 7, 0, Direction::kForward);
  ASSERT_EQ(gradients.launch(backward), 0) << gradients.error();
  const Signature signature = spec->signature(Direction::kForward), other = spec->signature(Direction::kBackward);
  const auto input = [](HostCall& of, const Signature& arguments, std::string_view name) -> std::vector<double>& {
    return of.inputs()[static_cast<size_t>(find_argument(arguments, name))].tensor.reals;
  };
  for (const Argument& argument : signature) {
    if (argument.role == ArgumentRole::kInput)
      call.inputs()[static_cast<size_t>(find_argument(signature, argument.name))] =
          gradients.inputs()[static_cast<size_t>(find_argument(other, argument.name))];
  }
  const std::vector<double> dout = input(gradients, other, "dout");
  const auto loss = [&] {
    call.pack_inputs();
    EXPECT_EQ(call.launch(forward), 0) << call.error();
    const std::vector<double> out = call.read("out").reals;
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  };
  for (const char* name : {"t", "w", "slope", "g", "own", "q", "k"}) {
    const std::vector<double> gradient = gradients.read(std::string("d") + name).reals;
    std::vector<double>& elements = input(call, signature, name);
    double largest = 0;
    for (size_t i = 0; i < elements.size(); i += 1 + elements.size() / 40) {
      constexpr double kStep = 0x1p-7;
      const double before = elements[i];
      elements[i] = before + kStep;
      const double above = loss();
      elements[i] = before - kStep;
      const double difference = (above - loss()) / (2 * kStep);
      elements[i] = before;
      largest = std::max(largest, std::abs(difference));
      EXPECT_NEAR(gradient[i], difference, 0.02 * std::max(1.0, std::abs(difference))) << name << "[" << i << "]";
    }
    EXPECT_GT(largest, 0.05) << name;
  }
}

}  // namespace
}  // namespace hstujit
