// The table that launches read without a lock: what it finds, what it forgets, how large it gets.
#include "runtime/dispatch/prepared_table.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/launch/launcher.h"
#include "tests/runtime/support.h"
#include "tests/support/sanitized.h"

namespace hstujit::test {
namespace {

const auto kContext = reinterpret_cast<cuda::Context>(0x1000);

TEST(PreparedTable, FindsByContextAndBucket) {
  PreparedTable table;
  EXPECT_EQ(table.find(1, 64), nullptr);
  table.add({kContext, 1, 64, {}, {}});
  table.add({kContext, 1, 128, {}, {}});
  ASSERT_NE(table.find(1, 64), nullptr);
  EXPECT_EQ(table.find(1, 64)->bucket, 64);
  EXPECT_EQ(table.find(1, 128)->bucket, 128);
  EXPECT_EQ(table.find(2, 64), nullptr);
  EXPECT_EQ(table.find(1, 65), nullptr);
  const Prepared* const first = table.find(1, 64);
  table.add({kContext, 1, 64, {}, {}});
  EXPECT_EQ(table.find(1, 64), first) << "what is there stays";
}

TEST(PreparedTable, GrowsWithTheNumberOfLengthsAndNotWithItsSquare) {
  if (kThreadSanitized) GTEST_SKIP() << "one thread";
  constexpr int64_t kLengths = 20000;
  PreparedTable table;
  for (int64_t length = 1; length <= kLengths; ++length) table.add({kContext, 7, length, {}, {}});
  for (int64_t length = 1; length <= kLengths; ++length) ASSERT_NE(table.find(7, length), nullptr) << length;
  EXPECT_EQ(table.find(7, kLengths + 1), nullptr);
  EXPECT_LE(table.slots(), size_t{8} * kLengths);
}

TEST(PreparedTable, IsReadWhileItGrows) {
  constexpr int64_t kLengths = 5000;
  PreparedTable table;
  std::atomic<int64_t> added{0};
  std::atomic<int> missed{0};
  std::atomic<int64_t> rounds{0};  // over what was there, begun while the table was still growing
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      for (int64_t seen = 0; seen < kLengths; seen = added.load(std::memory_order_acquire)) {
        for (int64_t length = 1; length <= seen; length += 97) missed += table.find(7, length) == nullptr ? 1 : 0;
        rounds += seen > 0 ? 1 : 0;
      }
    });
  }
  // Each part of the growth waits for a reader's round, however threads are scheduled.
  constexpr int64_t kPart = 500;
  int64_t seen_rounds = 0;
  for (int64_t length = 1; length <= kLengths; ++length) {
    table.add({kContext, 7, length, {}, {}});
    added.store(length, std::memory_order_release);
    if (length % kPart != 0 || length == kLengths) continue;
    while (rounds.load() == seen_rounds) std::this_thread::yield();
    seen_rounds = rounds.load();
  }
  readers.clear();
  EXPECT_EQ(missed, 0);
  EXPECT_GE(rounds, kLengths / kPart - 1) << "a round in each part but the last";
}

class ExactLengths : public RuntimeTest {};

TEST_F(ExactLengths, ShareOneModuleAndLaunchEach) {
  constexpr int64_t kLengths = 300;
  const auto engine = make_engine();
  const CurrentContext context(*engine);
  const auto op = Op::create(engine, {make_instance(), Direction::kForward, Backend::kCuda, LengthMode::kExact, {}});
  ASSERT_TRUE(op.ok());
  FakeLaunch launch(make_instance(), Lengths{{5, 9}, {}, 16});
  for (int64_t length = 16; length < 16 + kLengths; ++length) {
    launch.value("max_seq_len").integer = length;
    EXPECT_EQ((*op)->launch(launch.values.data(), launch.values.size(), nullptr).code(), Code::kNotPrepared);
    ASSERT_TRUE((*op)->prepare(length, -1).ok());
    EXPECT_TRUE((*op)->launch(launch.values.data(), launch.values.size(), nullptr).ok());
  }
  EXPECT_EQ(fake().launches, kLengths);
  EXPECT_LT(fake().module_loads, 20) << "as many as there are winners";
}

TEST_F(ExactLengths, LaunchersOfADestroyedContextAreForgotten) {
  const auto engine = make_engine();
  const CurrentContext context(*engine);
  const CudaDriverPtr driver = *engine->driver();
  const auto here = current_context(*driver);
  ASSERT_TRUE(here.ok());
  const auto module = Module::load(driver, *here, cubin_of("a cubin"), LaunchPlan());
  ASSERT_TRUE(module.ok());
  const auto launcher = Launcher::create(driver, *module, {}, {});
  ASSERT_TRUE(launcher.ok()) << launcher.status().message();
  PreparedTable table;
  table.add({kContext, 1, 64, {}, {*launcher}});
  EXPECT_EQ(table.launcher_of(**module), *launcher);
  EXPECT_EQ(table.find(1, 64)->launcher_of(BatchClass::kAny), *launcher);
  table.add({kContext, 2, 64, {}, {}});
  EXPECT_EQ(table.launcher_of(**module), nullptr);
  EXPECT_EQ(launcher->use_count(), 1) << "nobody else holds it";
}

}  // namespace
}  // namespace hstujit::test
