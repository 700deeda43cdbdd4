// Generated calls and checks of the direction backward, whose outputs are several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/launch/data_checks.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

Instance backward_instance() {
  Instance instance;
  instance.spec = *parse_op_spec(
      {{"op", "hstu_attention"}, {"heads", 2}, {"attn_dim", 16}, {"hidden_dim", 8}, {"num_targets", true}}, "spec");
  return instance;
}

const Lengths kLengths{.rows = {3, 0, 5}, .num_targets = {1, 0, 5}, .max_seq_len = 8};

TEST(Backward, EachGradientIsComparedAndGuarded) {
  const OpSpecPtr spec = backward_instance().spec;
  const ProblemData problem = *make_problem_data(spec, Direction::kBackward, kLengths, 1, 3);
  const std::vector<HostValue> reference = reference_outputs(problem);
  std::vector<std::vector<std::byte>> exact(problem.signature.size());
  for (size_t i = 0; i < exact.size(); ++i) {
    if (problem.signature[i].role != ArgumentRole::kOutput) continue;
    EXPECT_EQ(problem.shapes[i][0], 8 + 3);
    exact[i] = pack(reference[i].tensor, DataType::kBf16);
    exact[i].resize(problem.images[i].size(), std::byte{kPoison});
  }
  EXPECT_TRUE(compare(problem, reference, exact).good());
  EXPECT_EQ(compare(problem, reference, exact).bound, 1e-2);
  for (const char* name : {"dq", "dk", "dv"}) {
    const auto index = static_cast<size_t>(find_argument(problem.signature, name));
    auto outputs = exact;
    outputs[index][1] ^= std::byte{0x40};
    EXPECT_THAT(compare(problem, reference, outputs).sentence, testing::StartsWith(name));
    outputs = exact;
    outputs[index].back() = std::byte{0};
    EXPECT_EQ(compare(problem, reference, outputs).sentence,
              std::string(name) + " was written after the last sequence");
  }
}

TEST(Backward, DataChecksLookAtItsOffsetsAndTargets) {
  FakeLaunch launch(backward_instance(), kLengths, kDLCPU, Direction::kBackward);
  const auto check = [&] {
    return check_launch_data(nullptr, launch.problem.signature, launch.values.data(), nullptr).message();
  };
  EXPECT_EQ(check(), "");
  auto* const offsets = static_cast<int64_t*>(launch.tensor("seq_offsets").data);
  offsets[3] = 9;
  EXPECT_EQ(check(), "seq_offsets[3] is 9; it must be at most L = 8");
  offsets[3] = 8;
  static_cast<int64_t*>(launch.tensor("num_targets").data)[2] = 6;
  EXPECT_EQ(check(), "num_targets[2] is 6; it must be between 0 and the sequence's 5 rows");
}

}  // namespace
}  // namespace hstujit::test
