// Counts of an engine: look-ups of kernels, compiles, tunings, launches.
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/launch_fixture.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

Json stats_of(Engine& engine) { return engine.stats().to_json(engine.kernels().counts(), engine.modules().size()); }
std::string page_of(Engine& engine) {
  return engine.stats().to_prometheus(engine.kernels().counts(), engine.modules().size());
}

class StatsTest : public LaunchTest {};

TEST_F(StatsTest, AFreshCacheIsCompiledInto) {
  const Json kernels = stats_of(*engine_)["kernels"];
  const int compiles = compiler_->compiles;
  EXPECT_GE(compiles, 1);
  EXPECT_EQ(kernels["compiled"], compiles);
  EXPECT_EQ(kernels["failed"], 0);
  EXPECT_EQ(kernels["directory"], 0);
  EXPECT_EQ(kernels["nowhere"], compiles);
  EXPECT_EQ(kernels["loaded"], engine_->modules().size());
  EXPECT_GE(kernels["compile_ms"], 0.0);
}

TEST_F(StatsTest, TheNextEngineFindsKernelsInTheDirectoryAndThenInMemory) {
  const EnginePtr next = make_engine();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(make_op(next, Backend::kCuda, kBf16)->prepare(256, -1).ok());
  const Json kernels = stats_of(*next)["kernels"];
  EXPECT_EQ(kernels["compiled"], 0);
  EXPECT_EQ(kernels["nowhere"], 0);
  EXPECT_GE(kernels["directory"], 1);
  EXPECT_EQ(kernels["memory"], kernels["directory"]) << "the second op";
}

TEST_F(StatsTest, WhatIsNowhereIsMissing) {
  values_["HSTUJIT_ON_MISS"] = "fail";
  const EnginePtr next = make_engine();
  EXPECT_EQ(make_op(next)->prepare(256, -1).code(), Code::kCacheMiss);
  EXPECT_EQ(stats_of(*next)["kernels"]["nowhere"], 1);
  EXPECT_THAT(page_of(*next), HasSubstr("hstujit_kernel_lookups_total{found=\"nowhere\"} 1\n"));
}

TEST_F(StatsTest, ACompileThatFailsIsCounted) {
  compiler_->failure = Status(Code::kNoCompiler, "none");
  EXPECT_FALSE(make_op(engine_)->prepare(256, -1).ok());
  EXPECT_GE(stats_of(*engine_)["kernels"]["failed"], 1);
}

TEST_F(StatsTest, LaunchesAreThoseOfTheirKernel) {
  const Json before = stats_of(*engine_)["launches"];
  for (const Json& launched : before) EXPECT_EQ(launched["count"], 0);
  constexpr int kThreads = 4, kEach = 25;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const CurrentContext context(*engine_);
      for (int n = 0; n < kEach; ++n) EXPECT_TRUE(launch().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  launch_->values[0].tensor = nullptr;
  EXPECT_FALSE(launch().ok());
  int64_t sum = 0;
  std::string of_launched;
  const Json after = stats_of(*engine_)["launches"];
  for (const Json& launched : after) {
    EXPECT_EQ(launched["op"], "hstu_attention");
    sum += launched["count"].get<int64_t>();
    if (launched["count"] == 0) continue;
    of_launched = "hstujit_launches_total{op=\"hstu_attention\",kernel=\"" + launched["kernel"].get<std::string>() +
                  "\",key=\"" + launched["key"].get<std::string>() + "\"} 100\n";
  }
  EXPECT_EQ(sum, kThreads * kEach);
  EXPECT_THAT(page_of(*engine_), HasSubstr(of_launched));
}

// Each family once, with its help and type ahead of its samples.
TEST_F(StatsTest, ThePageIsPrometheusText) {
  std::string family;
  size_t samples = 0;
  std::istringstream page(page_of(*engine_));
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("# HELP ")) {
      EXPECT_TRUE(family.empty() || samples > 0) << family;
      family = line.substr(7, line.find(' ', 7) - 7);
      samples = 0;
      std::string type;
      ASSERT_TRUE(std::getline(page, type));
      EXPECT_TRUE(type == "# TYPE " + family + " counter" || type == "# TYPE " + family + " gauge") << type;
      continue;
    }
    EXPECT_THAT(line, ::testing::MatchesRegex(family + "(\\{[a-z]+=\"[a-z0-9_:,=\"]+\\})? [0-9.e+-]+"));
    ++samples;
  }
  EXPECT_EQ(family, "hstujit_launches_total");
}

}  // namespace
}  // namespace hstujit::test
