// Tensor maps of a launch: their axes as the plan says, whatever the rank of the tensor.
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/runtime/launch_fixture.h"

namespace hstujit::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MapTest : public LaunchTest {
 protected:
  // Makes a launcher of a kernel that has a map of this argument.
  Result<LauncherPtr> launcher_with(const FakeLaunch& launch, std::string_view argument, const TensorMapPlan& map) {
    LaunchPlan plan;
    plan.kernel_name = "k";
    plan.threads = 32;
    ParamSlot slot;
    slot.name = argument;
    slot.kind = ParamSlot::Kind::kTensorMap;
    slot.argument = find_argument(launch.problem.signature, argument);
    slot.map = map;
    plan.slots = {slot};
    return make_launcher(launch.problem.signature, plan);
  }
  // A launch of it; its status.
  Status launch_with(FakeLaunch& launch, std::string_view argument, const TensorMapPlan& map) {
    const auto launcher = launcher_with(launch, argument, map);
    if (!launcher.ok()) return launcher.status();
    return (*launcher)->launch(launch.values.data(), launch.values.size(), nullptr);
  }
  // Whether the kernel was given a map of that argument's memory.
  static bool launched_with_address_of(const FakeLaunch& launch, std::string_view argument) {
    void* address = nullptr;
    std::memcpy(&address, fake().parameters, sizeof(address));
    return address == launch.values[find_argument(launch.problem.signature, argument)].tensor->data;
  }

  static Instance rows_of_fp32() {
    return parse_instance({{"name", "norm"}, {"op", "layer_norm"}, {"width", 96}, {"dtype", "fp32"}, {"rows", 5}},
                          "norm", "")
        .value();
  }

  const Lengths lengths_of_five_{.rows = {5}, .num_targets = {}, .max_seq_len = 5};
};

TEST_F(MapTest, OfRankTwoInFp32WithoutSwizzle) {
  FakeLaunch launch(rows_of_fp32(), lengths_of_five_);
  const Status status = launch_with(launch, "x", {{{1, 24}, {0, 3}}, 0});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fake().map_rank, 2u);
  EXPECT_EQ(fake().map_type, 7);
  EXPECT_EQ(fake().swizzle, 0);
  EXPECT_THAT(std::vector(fake().dimensions, fake().dimensions + 2), ElementsAre(96, 5));
  EXPECT_EQ(fake().strides[0], 96u * 4);
  EXPECT_THAT(std::vector(fake().box, fake().box + 2), ElementsAre(24, 3));
}

TEST_F(MapTest, OfRankFourInAnyOrder) {
  FakeLaunch launch(make_instance(R"(, "dtype": "bf16", "rab_heads": 2)"),
                    {.rows = {64, 3}, .num_targets = {}, .max_seq_len = 64});
  const Status status = launch_with(launch, "rab", {{{3, 32}, {1, 2}, {2, 8}, {0, 1}}, 64});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fake().map_rank, 4u);
  EXPECT_EQ(fake().swizzle, 2);
  EXPECT_THAT(std::vector(fake().dimensions, fake().dimensions + 4), ElementsAre(64, 2, 64, 2));
  EXPECT_THAT(std::vector(fake().strides, fake().strides + 3), ElementsAre(64 * 64 * 2, 64 * 2, 2 * 64 * 64 * 2));
}

TEST_F(MapTest, OfEqualSizesIsEncodedOnce) {
  FakeLaunch launch(rows_of_fp32(), lengths_of_five_), elsewhere(rows_of_fp32(), lengths_of_five_),
      longer(rows_of_fp32(), {.rows = {6}, .num_targets = {}, .max_seq_len = 6});
  const auto launcher = launcher_with(launch, "x", {{{1, 24}, {0, 3}}, 0});
  ASSERT_TRUE(launcher.ok()) << launcher.status().message();
  struct Step {
    FakeLaunch& launch;
    int encoded, replaced;  // by then
  };
  for (const auto& [of, encoded, replaced] :
       {Step{launch, 1, 0}, Step{elsewhere, 1, 1}, Step{longer, 2, 1}, Step{launch, 3, 1}, Step{launch, 3, 2}}) {
    ASSERT_TRUE((*launcher)->launch(of.values.data(), of.values.size(), nullptr).ok());
    EXPECT_EQ(fake().tensor_maps, encoded);
    EXPECT_EQ(fake().replaced_addresses, replaced);
    EXPECT_TRUE(launched_with_address_of(of, "x"));
  }
}

TEST_F(MapTest, IsEncodedAnewWhereTheDriverRefusesAnotherAddress) {
  FakeLaunch launch(rows_of_fp32(), lengths_of_five_), elsewhere(rows_of_fp32(), lengths_of_five_);
  const auto launcher = launcher_with(launch, "x", {{{1, 24}, {0, 3}}, 0});
  ASSERT_TRUE(launcher.ok()) << launcher.status().message();
  ASSERT_TRUE((*launcher)->launch(launch.values.data(), launch.values.size(), nullptr).ok());
  fake().failing = "cuTensorMapReplaceAddress";
  ASSERT_TRUE((*launcher)->launch(elsewhere.values.data(), elsewhere.values.size(), nullptr).ok());
  fake().failing = nullptr;
  EXPECT_EQ(fake().tensor_maps, 2);
  EXPECT_TRUE(launched_with_address_of(elsewhere, "x"));
}

TEST_F(MapTest, OfThreadsThatLaunchAtATimeAreEncodedOrGivenAnotherAddress) {
  constexpr int kThreads = 8, kLaunches = 200;
  FakeLaunch first(rows_of_fp32(), lengths_of_five_);
  const auto launcher = launcher_with(first, "x", {{{1, 24}, {0, 3}}, 0});
  ASSERT_TRUE(launcher.ok()) << launcher.status().message();
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const CurrentContext current(*engine_);
      FakeLaunch launch(rows_of_fp32(), {.rows = {5 + i % 2}, .num_targets = {}, .max_seq_len = 6});
      for (int j = 0; j < kLaunches; ++j) {
        failed += (*launcher)->launch(launch.values.data(), launch.values.size(), nullptr).ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(fake().tensor_maps + fake().replaced_addresses, kThreads * kLaunches);
}

TEST_F(MapTest, ThatTheDriverWouldRefuseIsAMistakeOfThePlan) {
  FakeLaunch launch(rows_of_fp32(), lengths_of_five_);
  const std::vector<std::pair<TensorMapPlan, std::string>> cases = {
      {{{{1, 8}}, 0}, "has every dimension of a tensor"},
      {{{{1, 8}, {1, 2}}, 0}, "has every dimension of its tensor once"},
      {{{{1, 8}, {2, 2}}, 0}, "has every dimension of its tensor once"},
      {{{{0, 8}, {1, 2}}, 0}, "begins with the innermost dimension"},
      {{{{1, 8}, {0, 257}}, 0}, "1 to 256 elements"},
      {{{{1, 8}, {0, 0}}, 0}, "1 to 256 elements"},
      {{{{1, 7}, {0, 1}}, 0}, "a multiple of 16 bytes"},
      {{{{1, 64}, {0, 1}}, 128}, "no more than the swizzle's"},
      {{{{1, 8}, {0, 1}}, 48}, "no more than the swizzle's"}};
  for (const auto& [map, sentence] : cases) {
    const Status status = launch_with(launch, "x", map);
    EXPECT_EQ(status.code(), Code::kInternal) << sentence;
    EXPECT_THAT(status.message(), HasSubstr(sentence));
  }
  EXPECT_EQ(fake().tensor_maps, 0);
}

}  // namespace
}  // namespace hstujit::test
