// How near a layer's outputs must be: roundings of what lies between its steps are allowed for, and mistakes are not.
#include "compiler/spec/closeness.h"

#include <cmath>

#include "compiler/spec/program.h"
#include "compiler/spec/rounding.h"
#include "tests/operators/stu_layer/stu_specs.h"

namespace hstujit {
namespace {

// Closeness of attention, of sequences of 4, 0 and 1 rows, in a call whose kept projection is another one by `change`.
Closeness attention_of(const std::function<double(size_t, double)>& change) {
  const OpSpecPtr spec = stu("stu_layer", {{"recompute_uvqk", false}, {"recompute_normed_x", false}});
  const Lengths lengths{{4, 0, 1}, {}, 4, {}};
  const Signature signature = spec->signature(Direction::kForward);
  const auto place = [&](std::string_view name) { return static_cast<size_t>(find_argument(signature, name)); };
  std::vector<HostValue> values = spec->make_inputs(Direction::kForward, lengths, 3);
  spec->reference(Direction::kForward, lengths, values);
  // Attention alone, of that projection.
  const ProgramStep& step = spec->program(Direction::kForward)->steps[2];
  const Signature own = step.spec->signature(Direction::kForward);
  std::vector<HostValue> call = step.spec->make_inputs(Direction::kForward, lengths, 1);
  const HostTensor& uvqk = values[place("uvqk")].tensor;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!step.operands[i].columns || own[i].role == ArgumentRole::kOutput) {
      if (own[i].role == ArgumentRole::kInput) call[i] = values[place(own[i].name)];
      continue;
    }
    std::vector<double>& elements = call[i].tensor.reals;
    const size_t columns = elements.size() / 5;
    for (size_t e = 0; e < elements.size(); ++e) {
      const size_t from = e / columns * 96 + static_cast<size_t>(step.operands[i].first_column) + e % columns;
      elements[e] = change(from, uvqk.reals[from]);
    }
  }
  step.spec->reference(Direction::kForward, lengths, call);
  ReferenceComparison comparison(*spec, Direction::kForward, lengths, values, values);
  return comparison.of(place("attn"), call.back().tensor.reals);
}

TEST(StuLayerCloseness, ProjectionsThatAreRoundedToTheOtherSideAgree) {
  EXPECT_TRUE(attention_of([](size_t, double value) { return value; }).good());
  for (const size_t stride : {1, 2, 3, 7}) {
    const Closeness moved = attention_of([&](size_t i, double value) {
      return i % stride == 0 ? round_to(DataType::kBf16, value * (1 + 0x1p-7)) : value;
    });
    EXPECT_TRUE(moved.good()) << moved.mistake;
    EXPECT_GT(moved.error, 0);
  }
}

TEST(StuLayerCloseness, AWrongColumnOrRowDoesNot) {
  EXPECT_FALSE(attention_of([](size_t i, double value) { return i % 96 == 64 ? -value : value; }).good()) << "of q";
  EXPECT_FALSE(attention_of([](size_t i, double value) { return i / 96 == 4 ? 1.5 * value : value; }).good());
  EXPECT_FALSE(attention_of([](size_t i, double value) { return i % 96 >= 32 && i % 96 < 64 ? 0 : value; }).good());
}

}  // namespace
}  // namespace hstujit
