// Records that have as much as any reader takes, and merges of them.
#include "autotune_cache/records/record_room.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "autotune_cache/files/checked_json.h"
#include "cache_fixture.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

std::string config_of(const char* name, size_t i) { return fmt::format(R"({{"{}":{}}})", name, i); }

TuningRecord timings_of(const char* name, size_t count, const std::string& workload = kWorkload) {
  TuningRecord record = sample_record({});
  record.workload = workload;
  for (size_t i = 0; i < count; ++i) {
    record.timed.push_back({config_of(name, i), workload, "s", 5 + static_cast<double>(i), 1});
  }
  if (count > 0) record.winner = config_of(name, 0);
  return record;
}

TuningRecord rejections_of(const char* name, size_t count, const char* reason = "crashed") {
  TuningRecord record = sample_record({});
  record.workload.clear();
  for (size_t i = 0; i < count; ++i) record.rejected.push_back({config_of(name, i), "s", reason, ""});
  return record;
}

// The merge as a reader gets it.
TuningRecord merged_and_read(const TuningRecord& older, const TuningRecord& newer, size_t* left_out) {
  const auto merged = merge_records(older, newer, left_out);
  EXPECT_TRUE(merged.ok()) << merged.status().message();
  const auto text = format_record(*merged);
  EXPECT_TRUE(text.ok()) << text.status().message();
  EXPECT_LE(text->size(), kMaxRecordBytes);
  const auto read = parse_record(*text, tuning_digest(merged->key));
  EXPECT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(*read == *merged);
  return *read;
}

TEST(RecordRoomTest, TheNewerFindingsStayAndAsManyOfTheOlderAsAreRead) {
  if (kSanitized) GTEST_SKIP() << "records as large as any reader takes take minutes then";
  const TuningRecord older = rejections_of("b", 40'000), newer = timings_of("a", 40'000);
  size_t left_out = 0;
  const TuningRecord merged = merged_and_read(older, newer, &left_out);
  EXPECT_EQ(left_out, 80'000 - kMaxRecordFindings);
  EXPECT_TRUE(merged.timed == newer.timed);
  EXPECT_EQ(merged.winner, newer.winner);
  ASSERT_EQ(merged.rejected.size(), kMaxRecordFindings - 40'000);
  EXPECT_EQ(merged.rejected.front().config, config_of("b", left_out)) << "the first ones are the oldest";
  EXPECT_TRUE(merged == merged_and_read(older, merged, &left_out)) << "the same again";
}

// The order: findings that decide on the winner, those that keep a run from a crash, times of other workloads, those
// that are tried again anyway.
TEST(RecordRoomTest, OfTheOlderFindingsTheMostUsefulStay) {
  if (kSanitized) GTEST_SKIP() << "records as large as any reader takes take minutes then";
  TuningRecord older = timings_of("decides", 100);
  for (const TimedCandidate& timing : timings_of("other", 100, "other").timed) older.timed.push_back(timing);
  older.rejected = rejections_of("passes", 100, "load").rejected;
  for (const TuningRejection& rejection : rejections_of("lasts", 100).rejected) older.rejected.push_back(rejection);
  const auto counts = [&](size_t room) {
    const TuningRecord newer = rejections_of("new", kMaxRecordFindings - room);
    size_t left_out = 0;
    const TuningRecord merged = merged_and_read(older, newer, &left_out);
    EXPECT_EQ(left_out, 400 - room);
    EXPECT_EQ(merged.winner, older.winner);
    const auto count = [](const auto& list, const char* name) {
      return std::count_if(list.begin(), list.end(),
                           [&](const auto& finding) { return finding.config.text().find(name) != std::string::npos; });
    };
    return std::vector<int64_t>{count(merged.timed, "decides"), count(merged.rejected, "lasts"),
                                count(merged.timed, "other"), count(merged.rejected, "passes")};
  };
  EXPECT_EQ(counts(50), (std::vector<int64_t>{50, 0, 0, 0})) << "the winner, which is the oldest, among them";
  EXPECT_EQ(counts(150), (std::vector<int64_t>{100, 50, 0, 0}));
  EXPECT_EQ(counts(250), (std::vector<int64_t>{100, 100, 50, 0}));
  EXPECT_EQ(counts(350), (std::vector<int64_t>{100, 100, 100, 50}));
}

TEST(RecordRoomTest, ValuesAndBytesAreCountedToo) {
  if (kSanitized) GTEST_SKIP() << "records as large as any reader takes take minutes then";
  std::string many = "[0";
  for (int i = 1; i < 1000; ++i) many += ",0";
  many += "]";
  const std::string long_text(size_t{20} << 10, 'x');
  for (const std::string& part : {many, '"' + long_text + '"'}) {
    TuningRecord older = rejections_of("b", 0), newer = timings_of("a", 0);
    for (int i = 0; i < 3000; ++i) {
      older.rejected.push_back({fmt::format(R"({{"a":{},"part":{}}})", -1 - i, part), "s", "crashed", ""});
      if (i % 2 == 0)
        newer.timed.push_back({fmt::format(R"({{"a":{},"part":{}}})", i, part), kWorkload, "s", 5.0 + i, 1});
    }
    size_t left_out = 0;
    const TuningRecord merged = merged_and_read(older, newer, &left_out);
    EXPECT_GT(left_out, 0u);
    EXPECT_GT(merged.rejected.size(), 0u);
    EXPECT_TRUE(merged.timed == newer.timed);
  }
}

// Twice as long as its text on one line: what was read stays readable.
TEST(RecordRoomTest, WhatIsTooLongIndentedIsWrittenOnOneLine) {
  if (kSanitized) GTEST_SKIP() << "it takes half a minute then";
  const size_t levels = 20, zeros = 1'500'000;
  std::string many = R"({"list":)" + std::string(levels, '[') + "0";
  for (size_t i = 1; i < zeros; ++i) many += ",0";
  const TuningRecord record = sample_record({{many + std::string(levels, ']') + "}", kWorkload, "s", 10, 1}});
  const auto text = format_record(record);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->find('\n'), text->size() - 1);
  EXPECT_TRUE(parse_record(*text, tuning_digest(record.key)).ok());
}

TEST(RecordRoomTest, AnEnvironmentThatDoesNotFitIsTheNewerOne) {
  if (kThreadSanitized) GTEST_SKIP() << "one thread";
  TuningRecord older = timings_of("a", 1), newer = timings_of("b", 1);
  for (size_t i = 0; i < kMaxJsonNames - 10; ++i) {
    older.environment[fmt::format("older{}", i)] = newer.environment[fmt::format("newer{}", i)] = "";
  }
  size_t left_out = 0;
  EXPECT_EQ(merged_and_read(older, newer, &left_out).environment, newer.environment);
  EXPECT_EQ(left_out, 0u);
}

// Nothing is written that only looks like a file.
TEST(CheckedJsonTest, WhatNoReaderTakesIsNotWritten) {
  const Json object = {{"format", "f"}, {"text", "0123456789"}};
  const auto text = format_checked_json(object, 1000);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(parse_checked_json(*text, "f").ok());
  const Status refused = format_checked_json(object, 100).status();
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("\"f\" cannot be written so that it is read again: it has"));

  Json deep = Json::array();
  for (int i = 0; i < kMaxJsonDepth; ++i) deep = Json::array({deep});
  EXPECT_THAT(format_checked_json({{"format", "f"}, {"deep", deep}}, 1 << 20).status().message(),
              HasSubstr("more than 64 deep"));

  if (kSanitized) return;  // as many values take a minute then
  Json values = object;
  values["list"] = Json(kMaxJsonValues - 4, 0);  // with the object, its list, both texts and the checksum one too many
  EXPECT_THAT(format_checked_json(values, kMaxRecordBytes).status().message(),
              HasSubstr("the text has more than 4194304 values"));
  values["list"].erase(0);
  const auto most = format_checked_json(values, kMaxRecordBytes);
  ASSERT_TRUE(most.ok()) << most.status().message();
  EXPECT_TRUE(parse_checked_json(*most, "f").ok());
}

// Nothing of the file is shown: it may be any file of this user.
TEST(CheckedJsonTest, ARefusalSaysWhatIsWrong) {
  const std::string deep = "{\"secret\": " + std::string(80'000, '[') + std::string(80'000, ']') + "}";
  const std::pair<std::string, std::string> cases[] = {
      {deep, "1:75: lists and objects are nested more than 64 deep"},
      {"{\"secret\":\n1e999}", "2:5: malformed JSON: a number is out of range"},
      {"{\"secret\": 1, \"secret\": 2}", "1:15: a name occurs twice in one object; each may occur once"},
      {std::string(kMaxJsonBlanks + 1, ' ') + "{}",
       "1:65537: more than 65536 blanks and characters of comments are in one place"},
      {"secret", "1:1: malformed JSON: it must be one complete JSON object, with nothing after it"},
      {"{\"secret\": 1", "1:13: malformed JSON: it must be one complete JSON object, with nothing after it"},
      {"{\"secret\": 1,}", "1:14: malformed JSON: it must be one complete JSON object, with nothing after it"},
      {"{} secret", "1:4: malformed JSON: it must be one complete JSON object, with nothing after it"},
      {"[\"secret\"]", "it is no JSON object"},
  };
  for (const auto& [text, sentence] : cases) {
    const Status refused = parse_checked_json(text, "f").status();
    EXPECT_EQ(refused.code(), Code::kIo);
    EXPECT_EQ(refused.message(), sentence);
  }
}

}  // namespace
}  // namespace hstujit
