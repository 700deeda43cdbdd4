// Modules are unloaded when there are many, and only when nothing can need them.
#include "runtime/engine/loaded_modules.h"

#include <fmt/format.h>

#include <thread>

#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

class LoadedModulesTest : public RuntimeTest {
 protected:
  static constexpr size_t kStaying = 3, kIdle = 2;
  static constexpr size_t kBound = kStaying + kIdle;

  void SetUp() override {
    RuntimeTest::SetUp();
    EngineOptions options = engine_options();
    options.modules = {kStaying, kIdle};
    auto engine = Engine::create(std::move(options));
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *engine;
    context_ = std::make_unique<CurrentContext>(*engine_);
  }

  // An op of instance `i`, whose kernel no other instance has.
  std::unique_ptr<Op> prepared(int64_t i) const {
    auto op = make_op(engine_, Backend::kCuda, fmt::format(R"(, "max_attn_len": {})", i));
    const Status status = op->prepare(256, -1);
    EXPECT_TRUE(status.ok()) << status.message();
    return op;
  }
  void launch(const Op& op, cuda::Stream stream = nullptr) const {
    const Status status = op.launch(launch_.values.data(), launch_.values.size(), stream);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  // Ops of instances [from, to), each launched once and given back at once.
  void pass(int64_t from, int64_t to, cuda::Stream stream = nullptr) const {
    for (int64_t i = from; i < to; ++i) launch(*prepared(i), stream);
  }
  static cuda::Stream stream(uintptr_t address) { return reinterpret_cast<cuda::Stream>(address); }

  EnginePtr engine_;
  std::unique_ptr<CurrentContext> context_;
  FakeLaunch launch_{make_instance(), {{5, 0, 130}, {}, 200, {}}};
};

TEST_F(LoadedModulesTest, AreBoundedAndLoadedAgainWhenTheyAreAskedFor) {
  pass(1, 301);
  // The last one was its op's while others were unloaded.
  EXPECT_LE(engine_->modules().size(), kBound + 1);
  EXPECT_EQ(fake().module_loads, 300);
  EXPECT_GE(fake().module_unloads, 300 - static_cast<int>(kBound) - 1);
  pass(1, static_cast<int64_t>(kStaying) + 1);
  EXPECT_EQ(fake().module_loads, 300);  // they have stayed
  pass(100, 101);
  EXPECT_EQ(fake().module_loads, 301);
  EXPECT_EQ(fake().launches, 300 + static_cast<int>(kStaying) + 1);
  EXPECT_EQ(fake().unloaded_launches, 0);
  EXPECT_EQ(fake().relaxed, 0);
}

TEST_F(LoadedModulesTest, StayAsLongAsAnOpHasThem) {
  std::vector<std::unique_ptr<Op>> ops;
  for (int64_t i = 1; i <= 20; ++i) ops.push_back(prepared(i));
  for (const auto& op : ops) launch(*op);
  pass(100, 120);
  for (const auto& op : ops) launch(*op);
  EXPECT_EQ(fake().unloaded_launches, 0);
  EXPECT_EQ(engine_->modules().size(), 20 + kIdle + 1);
  ops.clear();
  pass(200, 201);
  EXPECT_LE(engine_->modules().size(), kBound + 1);
}

TEST_F(LoadedModulesTest, StayUntilLaunchesAreDone) {
  fake().pending = 1;
  pass(1, 41);
  EXPECT_EQ(fake().module_unloads, 0);
  EXPECT_EQ(engine_->modules().size(), 40u);
  fake().pending = 0;
  pass(100, 101);
  EXPECT_LE(engine_->modules().size(), kBound + 1);
}

TEST_F(LoadedModulesTest, StayOnceAGraphHasCapturedALaunch) {
  pass(1, 1 + static_cast<int64_t>(kStaying));
  const auto captured = prepared(50);
  launch(*captured);
  fake().capturing = 1;
  launch(*captured);
  fake().capturing = 0;
  launch(*captured);
  pass(51, 60);
  const int loads = fake().module_loads;
  pass(50, 51);
  EXPECT_EQ(fake().module_loads, loads);
}

TEST_F(LoadedModulesTest, StayAfterLaunchesThatLeaveNoMark) {
  pass(1, 1 + static_cast<int64_t>(kStaying));
  const auto expect_stays = [&](int64_t i) {
    pass(1000 * i, 1000 * i + 10);
    const int loads = fake().module_loads;
    pass(i, i + 1);
    EXPECT_EQ(fake().module_loads, loads) << i;
  };
  {
    const auto op = prepared(50);
    for (uintptr_t i = 1; i <= LaunchMarks::kMaxStreams + 1; ++i) launch(*op, stream(i));
  }
  expect_stays(50);
  fake().failing = "cuStreamGetId";
  pass(51, 52);
  fake().failing = nullptr;
  expect_stays(51);
  fake().failing = "cuEventCreate";
  pass(52, 53);
  fake().failing = nullptr;
  expect_stays(52);
  {
    const auto op = prepared(53);
    for (uintptr_t i = 1; i <= LaunchMarks::kMaxStreams; ++i) launch(*op, stream(i));
  }
  pass(53000, 53010);
  const int loads = fake().module_loads;
  pass(53, 54);
  EXPECT_EQ(fake().module_loads, loads + 1);  // its marks are enough
}

TEST_F(LoadedModulesTest, OfADestroyedContextAreForgotten) {
  pass(1, 40);
  fake().pending = 1;
  ++fake().contexts_destroyed;
  pass(100, 120);
  EXPECT_EQ(fake().unloaded_launches, 0);
  const int unloads = fake().module_unloads;
  fake().pending = 0;
  pass(200, 240);
  EXPECT_GT(fake().module_unloads, unloads);
}

TEST_F(LoadedModulesTest, AreUnloadedWhileOtherThreadsLaunch) {
  constexpr int64_t kThreads = 4, kRounds = 60, kInstances = 25;
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const CurrentContext context(*engine_);
      const auto own = prepared(500 + thread);
      for (int64_t round = 0; round < kRounds; ++round) {
        const auto op = prepared(1 + (round * (thread + 3)) % kInstances);
        launch(*op, stream(static_cast<uintptr_t>(1 + thread % 2)));
        launch(*own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  pass(900, 901);
  EXPECT_LE(engine_->modules().size(), kBound + 1);
  EXPECT_EQ(fake().unloaded_launches, 0);
  EXPECT_EQ(fake().launches, 2 * kThreads * kRounds + 1);
}

}  // namespace
}  // namespace hstujit::test
