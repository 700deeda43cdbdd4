#include "compiler/support/env.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "compiler/support/files.h"
#include "compiler/support/text.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(EnvironmentTable, IsInTheOrderOfItsIdentifiers) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < environment_variables().size(); ++i) {
    const EnvVariable& variable = environment_variables()[i];
    EXPECT_EQ(static_cast<size_t>(variable.id), i) << variable.name;
    EXPECT_THAT(variable.name, StartsWith("HSTUJIT_"));
    EXPECT_FALSE(variable.doc.empty()) << variable.name;
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
  }
}

TEST(EnvironmentTable, DefaultsAreAllowedValues) {
  const Environment nothing = Environment::of_values({});
  for (const EnvVariable& variable : environment_variables()) {
    EXPECT_FALSE(nothing.is_set(variable.id));
    switch (variable.kind) {
      case EnvKind::kFlag:
        EXPECT_TRUE(nothing.flag(variable.id).ok()) << variable.name;
        break;
      case EnvKind::kNumber:
        EXPECT_TRUE(nothing.number(variable.id).ok()) << variable.name;
        break;
      case EnvKind::kSize:
        EXPECT_TRUE(nothing.size(variable.id).ok()) << variable.name;
        break;
      case EnvKind::kChoice:
        EXPECT_TRUE(nothing.choice(variable.id).ok()) << variable.name;
        break;
      case EnvKind::kChoices:
        EXPECT_TRUE(nothing.choices(variable.id).ok()) << variable.name;
        break;
      default:
        break;
    }
  }
}

TEST(EnvironmentTable, TheDocumentationNamesEverySpellingOfAFlag) {
  for (const char* spelling : {"0", "1", "false", "off", "no", "true", "on", "yes"}) {
    EXPECT_TRUE(Environment::of_values({{"HSTUJIT_CHECK", spelling}}).flag(Env::kCheck).ok()) << spelling;
    EXPECT_NE(environment_page().find(std::string("`") + spelling + "`"), std::string::npos) << spelling;
  }
}

TEST(EnvironmentTable, TheDocumentationIsRenderedFromIt) {
  const auto page = whole_file(source_path("/docs/environment.md"));
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(*page, environment_page()) << "run `make docs`";
}

TEST(Environment, AnEmptyVariableCountsAsUnset) {
  const Environment environment = Environment::of_values({{"HSTUJIT_ON_MISS", ""}});
  EXPECT_FALSE(environment.is_set(Env::kOnMiss));
  EXPECT_EQ(environment.text(Env::kOnMiss), "heuristic");
}

TEST(Environment, Flags) {
  for (const char* yes : {"1", "true", "on", "yes"})
    EXPECT_TRUE(*Environment::of_values({{"HSTUJIT_CHECK", yes}}).flag(Env::kCheck));
  for (const char* no : {"0", "false", "off", "no", ""})
    EXPECT_FALSE(*Environment::of_values({{"HSTUJIT_CHECK", no}}).flag(Env::kCheck));
  const auto wrong = Environment::of_values({{"HSTUJIT_CHECK", "maybe"}}).flag(Env::kCheck);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(wrong.status().message(), "HSTUJIT_CHECK is \"maybe\"; allowed: 0, false, off, no or 1, true, on, yes");
}

TEST(Environment, Sizes) {
  const auto bytes = [](const char* text) {
    return Environment::of_values({{"HSTUJIT_CACHE_MAX_BYTES", text}}).size(Env::kCacheMaxBytes);
  };
  EXPECT_EQ(*bytes(""), int64_t{4} << 30);
  EXPECT_EQ(*bytes("0"), 0);
  EXPECT_EQ(*bytes("12345"), 12345);
  EXPECT_EQ(*bytes("3K"), 3072);
  EXPECT_EQ(*bytes("2T"), int64_t{2} << 40);
  EXPECT_EQ(*bytes("2MiB"), 2 << 20) << "as in an option";
  for (const char* wrong : {"-1", "x", "1.5G", " 1", "9223372036854775808", "9223372036854775807K"}) {
    EXPECT_THAT(bytes(wrong).status().message(), AllOf(HasSubstr("HSTUJIT_CACHE_MAX_BYTES"), HasSubstr(quote(wrong))))
        << wrong;
  }
}

TEST(Environment, Numbers) {
  const auto jobs = [](const char* text) {
    return Environment::of_values({{"HSTUJIT_COMPILE_JOBS", text}}).number(Env::kCompileJobs);
  };
  EXPECT_EQ(*jobs(""), 0);
  EXPECT_EQ(*jobs("1024"), 1024);
  EXPECT_EQ(*jobs("010"), 10) << "decimal";
  for (const char* wrong : {"-1", "+1", "1025", "0x10", "1K", " 1", "1.0", "18446744073709551616"}) {
    EXPECT_EQ(jobs(wrong).status().message(),
              fmt::format("HSTUJIT_COMPILE_JOBS is {}; allowed: a whole number from 0 to 1024", quote(wrong)));
  }
}

TEST(Environment, Choices) {
  EXPECT_EQ(*Environment::of_values({{"HSTUJIT_ON_MISS", "fail"}}).choice(Env::kOnMiss), "fail");
  EXPECT_EQ(Environment::of_values({{"HSTUJIT_ON_MISS", "panic"}}).choice(Env::kOnMiss).status().message(),
            "HSTUJIT_ON_MISS is \"panic\"; allowed: heuristic, tune, fail");
  EXPECT_EQ(Environment::of_values({{"HSTUJIT_ON_MISS", "fial"}}).choice(Env::kOnMiss).status().message(),
            "HSTUJIT_ON_MISS is \"fial\", did you mean \"fail\"?; allowed: heuristic, tune, fail");
  EXPECT_EQ(Environment::of_values({{"HSTUJIT_LOG", "ALL"}}).choices(Env::kLog).status().message(),
            "HSTUJIT_LOG contains \"ALL\", did you mean \"all\"?; allowed: compile, cache, dispatch, tune, all");
  EXPECT_EQ(Environment::of_values({{"HSTUJIT_CHECK", "ture"}}).flag(Env::kCheck).status().message(),
            "HSTUJIT_CHECK is \"ture\", did you mean \"true\"?; allowed: 0, false, off, no or 1, true, on, yes");
  EXPECT_THAT(*Environment::of_values({{"HSTUJIT_LOG", "cache,,tune"}}).choices(Env::kLog),
              ElementsAre("cache", "tune"));
  for (const char* value : {"all,cahce", "cahce,all"})
    EXPECT_THAT(Environment::of_values({{"HSTUJIT_LOG", value}}).choices(Env::kLog).status().message(),
                HasSubstr("HSTUJIT_LOG contains \"cahce\", did you mean \"cache\"?"));
  EXPECT_THAT(*Environment::of_values({{"HSTUJIT_LOG", "all"}}).choices(Env::kLog),
              ElementsAre("compile", "cache", "dispatch", "tune"));
  EXPECT_EQ(Environment::of_values({{"HSTUJIT_LOG", "cache,hash"}}).choices(Env::kLog).status().message(),
            "HSTUJIT_LOG contains \"hash\"; allowed: compile, cache, dispatch, tune, all");
}

TEST(Environment, NothingIsDumpedThatTheCompilerDoesNotGive) {
  EXPECT_EQ(Environment::of_values({{"HSTUJIT_DUMP", "src,sass"}}).choices(Env::kDump).status().message(),
            "HSTUJIT_DUMP contains \"sass\"; allowed: ir, src, log, all");
}

TEST(Environment, Paths) {
  EXPECT_THAT(Environment::of_values({{"HSTUJIT_CACHE_PATH", "/a::/b:"}}).paths(Env::kCachePath),
              ElementsAre("/a", "/b"));
  EXPECT_TRUE(Environment::of_values({}).paths(Env::kCachePath).empty());
}

TEST(Environment, CacheDirectory) {
  EXPECT_EQ(*Environment::of_values({{"HSTUJIT_CACHE_DIR", "/c"}, {"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}})
                 .cache_directory(),
            "/c");
  EXPECT_EQ(*Environment::of_values({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}).cache_directory(), "/x/hstujit");
  EXPECT_EQ(*Environment::of_values({{"XDG_CACHE_HOME", "x"}, {"HOME", "/h"}}).cache_directory(), "/h/.cache/hstujit");
  EXPECT_FALSE(Environment::of_values({{"HOME", "h"}}).cache_directory().ok());
  EXPECT_EQ(*Environment::of_values({{"HOME", "/h"}}).cache_directory(), "/h/.cache/hstujit");
  EXPECT_EQ(Environment::of_values({}).cache_directory().status().code(), Code::kIo);
}

TEST(Environment, OfTheProcess) {
  ::setenv("HSTUJIT_RECORD", "/tmp/misses", 1);
  EXPECT_EQ(Environment::of_process().text(Env::kRecord), "/tmp/misses");
  ::unsetenv("HSTUJIT_RECORD");
  EXPECT_FALSE(Environment::of_process().is_set(Env::kRecord));
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_TRUE(split("", ',').empty());
}

TEST(Text, QuoteMakesOneLine) { EXPECT_EQ(quote("a\"b\\c\n\t\x01"), "\"a\\\"b\\\\c\\n\\t\\x01\""); }

TEST(Text, WhatIsShownIsUtf8) {
  EXPECT_EQ(printable("gr\xc3\xb6\xc3\x9f"
                      "e \xe2\x82\xac \xf0\x9f\x98\x80"),
            "größe € 😀");
  EXPECT_EQ(printable("\"a\\\x7f\n"), "\"a\\\\x7f\\n");
  EXPECT_EQ(printable("\x80|\xff|\xc3"), "\\x80|\\xff|\\xc3");                  // begins nothing, or is torn
  EXPECT_EQ(printable("\xc0\x80|\xe0\x80\x80"), "\\xc0\\x80|\\xe0\\x80\\x80");  // NUL, longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80|\xf4\x90\x80\x80"), "\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80");
}

TEST(Text, WhatTakesNoRoomIsShown) {
  for (const char* unseen : {"\u00ad", "\u180e", "\u200b", "\u200d", "\u2060", "\u3164", "\ufeff", "\ufe0f", "\u034f",
                             "\u2800", "\U000e0041", "\U000e01ef", "\U0001d173"})
    EXPECT_THAT(printable(unseen), ::testing::MatchesRegex("\\\\[uU].*")) << printable(unseen);
  EXPECT_EQ(printable("\u200b|\U000e0041"), "\\u200b|\\U000e0041");
}

TEST(Text, BytesOfNoCharacterAreWrittenInUtf8) {
  EXPECT_EQ(as_utf8("a\n\u00e4\U000e0041"), "a\n\u00e4\U000e0041");
  EXPECT_EQ(as_utf8("/c/\xff|\xc3"), "/c/\\xff|\\xc3");
}

TEST(Text, WhatIsShownIsShort) {
  EXPECT_EQ(quote(std::string(1000, 'a')), "\"" + std::string(kLongestShown, 'a') + "...\"");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("ab\xc3\xb6", 3), "ab...");  // no half of a character
  EXPECT_EQ(printable("ab\n", 3), "ab...");
  EXPECT_EQ(quote(std::string(1000, 'a'), std::string::npos).size(), 1002U);
}

}  // namespace
}  // namespace hstujit
