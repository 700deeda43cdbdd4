#include "compiler/support/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hstujit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(LogLine, FieldsInOrderQuotedWhereNeeded) {
  EXPECT_EQ(log_line(LogCategory::kCache, "miss",
                     {{"key", "ab12"}, {"bytes", 12}, {"ms", 1.5}, {"built", true}, {"reason", "length differs"}}),
            "hstujit,cache,miss,key=ab12,bytes=12,ms=1.5,built=true,reason=\"length differs\"");
}

TEST(LogLine, NoValueCanEndTheLineOrTheField) {
  EXPECT_EQ(log_line(LogCategory::kCompile, "failed", {{"a", "x,y"}, {"b", "1\n2"}, {"c", "\""}, {"d", ""}}),
            "hstujit,compile,failed,a=\"x,y\",b=\"1\\n2\",c=\"\\\"\",d=\"\"");
}

TEST(Log, WithoutASinkNothingIsEnabled) {
  const Log log;
  EXPECT_FALSE(log.enabled(LogCategory::kCache));
  log.event(LogCategory::kCache, "hit", {{"key", "x"}});
  EXPECT_FALSE(Log(nullptr).enabled(LogCategory::kTune));
}

TEST(Log, OnlyChosenCategoriesReachTheSink) {
  std::vector<std::pair<LogCategory, std::string>> lines;
  const auto sink = [&](LogCategory category, const std::string& line) { lines.emplace_back(category, line); };
  const Log log(sink, {LogCategory::kCache, LogCategory::kTune});
  log.event(LogCategory::kCache, "hit");
  log.event(LogCategory::kCompile, "start");
  log.event(LogCategory::kTune, "winner", {{"config", "m128"}});
  EXPECT_THAT(lines, ElementsAre(Pair(LogCategory::kCache, "hstujit,cache,hit"),
                                 Pair(LogCategory::kTune, "hstujit,tune,winner,config=m128")));

  lines.clear();
  const Log all(sink);
  all.event(LogCategory::kDispatch, "prepared");
  EXPECT_EQ(lines.size(), 1u);
}

TEST(Log, FromTheEnvironment) {
  const auto log = Log::from_environment(Environment::of_values({{"HSTUJIT_LOG", "cache"}}));
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE(log->enabled(LogCategory::kCache));
  EXPECT_FALSE(log->enabled(LogCategory::kCompile));

  ::testing::internal::CaptureStderr();
  log->event(LogCategory::kCache, "hit", {{"layer", "user"}});
  log->event(LogCategory::kTune, "winner");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "hstujit,cache,hit,layer=user\n");

  EXPECT_FALSE(Log::from_environment(Environment::of_values({}))->enabled(LogCategory::kCache));
  EXPECT_THAT(Log::from_environment(Environment::of_values({{"HSTUJIT_LOG", "noise"}})).status().message(),
              HasSubstr("noise"));
}

}  // namespace
}  // namespace hstujit
