// The reference of norm_attention: gradients against differences of forward, and what one step leaves to another.
#include <cmath>
#include <numeric>

#include "compiler/spec/program.h"
#include "compiler/spec/rounding.h"
#include "tests/operators/norm_attention/norm_attention_specs.h"

namespace hstujit {
namespace {

std::vector<HostValue> call(const OpSpec& spec, Direction direction, const Lengths& lengths,
                            std::vector<HostValue> values) {
  values.resize(spec.signature(direction).size());
  spec.reference(direction, lengths, values);
  return values;
}

HostValue& value(const OpSpec& spec, Direction direction, std::vector<HostValue>& values, std::string_view name) {
  return values.at(static_cast<size_t>(find_argument(spec.signature(direction), name)));
}

// Steps in fp32: what rounding leaves of a difference is far below the tolerance.
TEST(NormAttentionReference, GradientsAreThoseOfForward) {
  const Lengths lengths{{3, 0, 2}, {1, 0, 0}, 3, {}};
  for (const char* norm : {"layer_norm", "rms_norm"}) {
    const OpSpecPtr spec =
        norm_attention({{"norm", norm}, {"dtype", "fp32"}, {"precision", "ieee"}, {"num_targets", true}});
    const Signature forward = spec->signature(Direction::kForward), backward = spec->signature(Direction::kBackward);
    std::vector<HostValue> gradients = spec->make_inputs(Direction::kBackward, lengths, 3);
    // The same call, forward.
    std::vector<HostValue> inputs(forward.size());
    for (size_t i = 0; i < forward.size(); ++i) {
      if (forward[i].role == ArgumentRole::kInput)
        inputs[i] = value(*spec, Direction::kBackward, gradients, forward[i].name);
    }
    const std::vector<double> dout = value(*spec, Direction::kBackward, gradients, "dout").tensor.reals;
    gradients = call(*spec, Direction::kBackward, lengths, std::move(gradients));
    const auto loss = [&] {
      const std::vector<double> out = call(*spec, Direction::kForward, lengths, inputs).back().tensor.reals;
      return std::inner_product(out.begin(), out.end(), dout.begin(), 0.0);
    };
    int compared = 0;
    for (size_t k = 0; k < backward.size(); ++k) {
      if (backward[k].role != ArgumentRole::kOutput) continue;
      HostTensor& input = value(*spec, Direction::kForward, inputs, backward[k].name.substr(1)).tensor;
      ASSERT_EQ(gradients[k].tensor.reals.size(), input.reals.size()) << backward[k].name;
      for (size_t i = 0; i < input.reals.size(); i += 7) {
        constexpr double kStep = 1e-2;
        const double before = input.reals[i];
        input.reals[i] = before + kStep;
        const double up = loss();
        input.reals[i] = before - kStep;
        const double down = loss();
        input.reals[i] = before;
        EXPECT_NEAR(gradients[k].tensor.reals[i], (up - down) / (2 * kStep), 2e-4)
            << norm << " " << backward[k].name << " " << i;
        ++compared;
      }
    }
    EXPECT_GT(compared, 50);
  }
}

// By its parts, put together here: the norm's rounded rows, cut into v, q and k.
TEST(NormAttentionReference, IsItsStepsOneAfterTheOther) {
  const OpSpecPtr spec = norm_attention();
  const Lengths lengths{{4, 1}, {}, 4, {}};
  const std::vector<HostValue> whole =
      call(*spec, Direction::kForward, lengths, spec->make_inputs(Direction::kForward, lengths, 5));
  const Program& program = *spec->program(Direction::kForward);
  const OpSpec& norm = *program.steps[0].spec;
  const OpSpec& attention = *program.steps[1].spec;

  std::vector<HostValue> norm_values(whole.begin(), whole.begin() + 4);  // x, weight, bias, eps
  const HostTensor normed = call(norm, Direction::kForward, lengths, norm_values).back().tensor;
  std::vector<HostValue> values = attention.make_inputs(Direction::kForward, lengths, 1);
  for (const auto& [name, first, width] : {std::tuple("v", 0, 16), {"q", 32, 8}, {"k", 48, 8}}) {
    HostTensor tensor{{5, 2, width}, {}, {}};
    for (int row = 0; row < 5; ++row) {
      for (int i = 0; i < 2 * width; ++i)
        tensor.reals.push_back(round_to(DataType::kBf16, normed.reals[static_cast<size_t>(row * 64 + first + i)]));
    }
    value(attention, Direction::kForward, values, name).tensor = tensor;
  }
  for (const char* name : {"alpha", "scaling_seqlen", "max_seq_len"}) {
    std::vector<HostValue> given = whole;
    value(attention, Direction::kForward, values, name) = value(*spec, Direction::kForward, given, name);
  }
  const std::vector<HostValue> out = call(attention, Direction::kForward, lengths, values);
  EXPECT_EQ(whole.back().tensor.reals, out.back().tensor.reals);
  EXPECT_EQ(whole.back().tensor.shape, (std::vector<int64_t>{5, 2, 16}));
}

}  // namespace
}  // namespace hstujit
