#include "tools/hstujit/values.h"

#include <gtest/gtest.h>

#include "compiler/support/run_limits.h"
#include "tools/hstujit/exit_code.h"

namespace hstujit {
namespace {

TEST(Duration, TakesUnits) {
  EXPECT_EQ(*parse_duration("90"), 90);
  EXPECT_EQ(*parse_duration("60s"), 60);
  EXPECT_EQ(*parse_duration("2m"), 120);
  EXPECT_EQ(*parse_duration("2min"), 120);
  EXPECT_EQ(*parse_duration("1.5h"), 5400);
  EXPECT_EQ(*parse_duration(std::to_string(kMaxBudgetSeconds)), static_cast<double>(kMaxBudgetSeconds));
}

TEST(Duration, RefusesTheRestWithASentence) {
  for (const char* text : {"", "s", "-1s", "0", "5 parsecs", "inf", "nan", "2147483648s"}) {
    const Result<double> seconds = parse_duration(text);
    ASSERT_FALSE(seconds.ok()) << text;
    EXPECT_EQ(seconds.status().code(), Code::kInvalidArgument);
    EXPECT_NE(seconds.status().message().find("allowed: a number above 0"), std::string::npos);
    EXPECT_TRUE(seconds.status().message().ends_with(std::to_string(kMaxBudgetSeconds) + "s"));
  }
}

TEST(Quantities, AreReadable) {
  EXPECT_EQ(bytes_text(812), "812 B");
  EXPECT_EQ(bytes_text(1.2 * 1024 * 1024), "1.2 MiB");
  EXPECT_EQ(seconds_text(0.351), "0.35 s");
  EXPECT_EQ(seconds_text(74.12), "74.1 s");
  EXPECT_EQ(seconds_text(312), "5 min 12 s");
}

TEST(ExitCode, EveryCodeHasOne) {
  EXPECT_EQ(exit_code(Code::kOk), ExitCode::kDone);
  for (const Code code : {Code::kInvalidArgument, Code::kInvalidConfig, Code::kNotFound}) {
    EXPECT_EQ(exit_code(code), ExitCode::kBadRequest);
  }
  for (const Code code : {Code::kNoDriver, Code::kNoCompiler, Code::kNoDevice}) {
    EXPECT_EQ(exit_code(code), ExitCode::kUnavailable);
  }
  for (const Code code : {Code::kUnsupported, Code::kCompileFailed, Code::kDriverError, Code::kCacheMiss,
                          Code::kNotPrepared, Code::kOutOfMemory, Code::kCheckFailed, Code::kIo, Code::kInternal}) {
    EXPECT_EQ(exit_code(code), ExitCode::kFailed);
  }
  EXPECT_EQ(exit_code(static_cast<Code>(99)), ExitCode::kFailed);
}

TEST(Counts, OneIsSingular) {
  EXPECT_EQ(count_text(0, "tuning record"), "0 tuning records");
  EXPECT_EQ(count_text(1, "key"), "1 key");
  EXPECT_EQ(count_text(2, "entry"), "2 entries");
}

}  // namespace
}  // namespace hstujit
