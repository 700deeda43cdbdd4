// Launches of several kernels over a workspace, in emulation.
#include <gmock/gmock.h>

#include <stdexcept>

#include "tests/emit/emit_with.h"
#include "tests/emit/toy_operator.h"
#include "tests/emulation/emulated_kernel.h"

namespace hstujit {
namespace {

constexpr int64_t kRows = 5, kWidth = 64;

class EmulatedWorkspace : public ::testing::Test {
 protected:
  // Emits the two kernels and changes their plan before they run.
  std::vector<float> run(const std::function<void(LaunchPlan&)>& change) {
    const ToySpec spec;
    const AddRowsSkeleton skeleton;
    auto kernel = emit_with(skeleton, toy_templates(), toy_schema(), spec, Direction::kForward, skeleton.space(spec)[0],
                            *known_device("sm_80"));
    if (!kernel.ok()) throw std::runtime_error(kernel.status().message());
    change(kernel->plan);
    std::vector<float> y(kRows * kWidth, -1);
    std::vector<HstujitHostValue> values(5);
    values[0] = {x_.data(), shape_, strides_, 2, 0, 0};
    values[4] = {y.data(), shape_, strides_, 2, 0, 0};
    EmulatedKernel(*kernel).launch(values, 1);
    return y;
  }

  void SetUp() override {
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = static_cast<float>(i);
  }

  std::vector<float> x_ = std::vector<float>(kRows * kWidth);
  int64_t shape_[2] = {kRows, kWidth}, strides_[2] = {kWidth, 1};
};

TEST_F(EmulatedWorkspace, KernelsRunOneAfterTheOtherOverZeroes) {
  EXPECT_EQ(run([](LaunchPlan&) {}), x_);
}

TEST_F(EmulatedWorkspace, IsPoisonWhereNobodyAsksForZeroes) {
  for (const float y : run([](LaunchPlan& plan) { plan.workspace.regions[0].cleared = false; })) EXPECT_NE(y, y);
}

TEST_F(EmulatedWorkspace, HasNoByteTooMany) {
  const auto launch = [&] { run([](LaunchPlan& plan) { plan.workspace.regions[0].bytes[1].constant -= 4; }); };
  EXPECT_THAT(launch, ::testing::ThrowsMessage<std::runtime_error>(
                          ::testing::HasSubstr("add_rows writes byte 1260 of a workspace of 1260 bytes")));
}

}  // namespace
}  // namespace hstujit
