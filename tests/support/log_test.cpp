#include "compiler/support/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <stdexcept>
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

TEST(LogLine, NoValueReachesATerminalAsItIs) {
  EXPECT_EQ(
      log_line(LogCategory::kCache, "hit", {{"a", "\x1b[1m"}, {"b", "\xc2\x9b"}, {"c", "\xe2\x80\xae"}, {"d", "\xff"}}),
      "hstujit,cache,hit,a=\"\\x1b[1m\",b=\"\\u009b\",c=\"\\u202e\",d=\"\\xff\"");
}

TEST(Log, ASinkThatThrowsLosesTheLineOnly) {
  const Log log([](LogCategory, const std::string&) { throw std::runtime_error("full"); });
  EXPECT_NO_THROW(log.event(LogCategory::kCache, "hit"));
}

// Standard error of the process, replaced by `number` while `body` runs.
void with_standard_error(int number, const std::function<void()>& body) {
  std::fflush(stderr);
  const int before = ::dup(STDERR_FILENO);
  if (number < 0) {
    ::close(STDERR_FILENO);
  } else {
    ::dup2(number, STDERR_FILENO);
  }
  body();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
}

TEST(Log, StandardErrorThatTakesNothingEndsNobody) {
  const auto log = Log::from_environment(Environment::of_values({{"HSTUJIT_LOG", "cache"}}));
  ASSERT_TRUE(log.ok());
  const auto write = [&] { EXPECT_NO_THROW(log->event(LogCategory::kCache, "hit")); };
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  with_standard_error(ends[1], write);
  ::close(ends[1]);
  with_standard_error(-1, write);
  const int full = ::open("/dev/full", O_WRONLY);
  with_standard_error(full, write);
  if (full >= 0) ::close(full);
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0) << "nothing is left for whoever unblocks it";
}

}  // namespace
}  // namespace hstujit
