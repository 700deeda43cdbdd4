// Files of tuning records: what is written, read and refused.
#include "autotune_cache/records/tuning_record_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>

#include "autotune_cache/files/checked_json.h"
#include "cache_fixture.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

using ::testing::HasSubstr;

// Records that were made before there were classes of batches are found.
TEST(TuningRecordFileTest, AKeyOfAnyBatchSaysNothingOfClasses) {
  TuningRecord record = sample_record({{sample_config(64), kWorkload, "s", 20, 1}});
  EXPECT_THAT(*format_record(record), ::testing::Not(::testing::AnyOf(HasSubstr("small"), HasSubstr("short"))));
  for (const BatchClass batch_class : {BatchClass::kSmall, BatchClass::kShortSequences}) {
    record.key.batch_class = batch_class;
    const std::string text = *format_record(record);
    EXPECT_THAT(text, HasSubstr(key_field(batch_class)));
    const auto read = parse_record(text, tuning_digest(record.key));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->key, record.key);
  }
  record.key.batch_class = BatchClass::kSmall;
  EXPECT_EQ(tuning_digest(record.key), "bbef80195639e7e5254d76c38c24180a20f1881ef30664ac1998b530bf3a9ca1")
      << "as when that was the only class";
}

TEST(TuningRecordFileTest, TimesOfNoKernelAreABadRecord) {
  const TuningRecord record = sample_record({{sample_config(64), kWorkload, "s", 20, 1}});
  const auto is_read = [&](const Json& time) {
    Json json = json_or_null(*format_record(record));
    json.erase("checksum");
    json["timed"][0]["median_us"] = time;
    return parse_record(*format_checked_json(json, kMaxRecordBytes), tuning_digest(record.key)).ok();
  };
  EXPECT_TRUE(is_read(0.5));
  for (const Json& time : {Json(1.7e308), Json(5e-324), Json(-1), Json(0), Json("20"), Json()}) {
    EXPECT_FALSE(is_read(time)) << time;
  }
  for (const double time : {1.7e308, 5e-324, std::nan("")}) {
    EXPECT_FALSE(format_record(sample_record({{sample_config(64), kWorkload, "s", time, 1}})).ok()) << time;
  }
}

TEST(TuningRecordFileTest, FieldsOfAnotherTypeAreABadRecordThatNamesThem) {
  TuningRecord record = sample_record({{sample_config(64), kWorkload, "s", 20, 1}});
  record.timed[0].baseline = {sample_config(64), "s", 20};
  record.rejected = {{sample_config(128), "s", "spill", ""}};
  record.winner = record.heuristic = sample_config(64);
  const auto with = [&](const char* pointer, const Json& value) {
    Json json = json_or_null(*format_record(record));
    json.erase("checksum");
    json[Json::json_pointer(pointer)] = value;
    return parse_record(*format_checked_json(json, kMaxRecordBytes), tuning_digest(record.key)).status();
  };
  EXPECT_TRUE(with("/workload", "w").ok());
  const std::vector<Json> no_objects = {"x", 3, true, Json(), Json::array(), Json::object()};
  for (const Json& value : no_objects) {
    for (const char* field : {"/winner", "/heuristic", "/winner/config", "/heuristic/config", "/timed/0/config",
                              "/timed/0/baseline", "/timed/0/baseline/config", "/rejected/0/config"}) {
      const Status status = with(field, value);
      EXPECT_EQ(status.code(), Code::kIo) << field << value;
      const std::string name = std::string(field).substr(std::string(field).rfind('/') + 1);
      EXPECT_THAT(status.message(), HasSubstr(name + " is " + value.dump() + "; it must be an object")) << field;
    }
  }
  for (const Json& value : {Json(3), Json(), Json::array(), Json::object()}) {
    for (const char* field : {"/workload", "/timed/0/workload", "/timed/0/source", "/timed/0/baseline/source",
                              "/rejected/0/source", "/rejected/0/reason", "/rejected/0/detail"}) {
      EXPECT_THAT(with(field, value).message(), HasSubstr("it must be a string")) << field << value;
    }
  }
  for (const Json& value : {Json(3), Json(), Json("x"), Json::object()}) {
    for (const char* field : {"/timed", "/rejected"})
      EXPECT_THAT(with(field, value).message(), HasSubstr("it must be a list")) << field << value;
  }
  for (const char* field : {"/winner/median_us", "/winner/spread_us", "/heuristic/median_us"}) {
    for (const Json& value : {Json(-1), Json("x"), Json(), Json(1e300)})
      EXPECT_THAT(with(field, value).message(), HasSubstr("it must be a time")) << field << value;
  }
  EXPECT_THAT(with("/rows", -1).message(), HasSubstr("rows is -1; it must be 0 or more"));
  EXPECT_THAT(with("/rows", "1").message(), HasSubstr("rows is \"1\"; it must be an integer"));
  EXPECT_THAT(with("/environment", 3).message(), HasSubstr("environment is no object"));
  EXPECT_THAT(with("/environment/nvrtc", 13.0).message(), HasSubstr("environment.nvrtc is 13.0; it must be a string"));
  EXPECT_THAT(with("/winner", {{"median_us", 20}}).message(), HasSubstr("winner has no config"));
  record.winner = {};
  EXPECT_TRUE(with("/workload", "w").ok()) << "of an unfinished run";
}

// A file may claim so many, of any configs: what is asked of it takes seconds and not minutes.
TEST(TuningRecordFileTest, AsManyFindingsAsAreReadTakeNoMinutes) {
  if (kThreadSanitized) GTEST_SKIP() << "one thread";
  TuningRecord record = sample_record({});
  for (size_t i = 0; i < kMaxRecordFindings / 2; ++i) {
    record.timed.push_back({fmt::format(R"({{"tile": {}, "part": 0.5}})", i),
                            kWorkload,
                            "s",
                            10.0 + static_cast<double>(i),
                            0,
                            {R"({"tile": -1, "part": 0.5})", "s", 5}});
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(select_winner(record), record.timed[0].config);
  EXPECT_TRUE(contains(record, record));
  TuningRecord less = record;
  less.timed.pop_back();
  EXPECT_TRUE(contains(record, less));
  EXPECT_FALSE(contains(less, record));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(TuningRecordFileTest, MoreFindingsThanAnyTuningMakesAreNoRecord) {
  if (kThreadSanitized) GTEST_SKIP() << "one thread";
  TuningRecord record = sample_record({});
  const size_t count = kMaxRecordFindings + 1;
  record.rejected.assign(1, {sample_config(1), "s", "spill", ""});
  Json json = json_or_null(*format_record(record));
  json["rejected"] = Json(count, json["rejected"][0]);
  const std::string text = *format_checked_json(json, kMaxRecordBytes);
  const auto parsed = parse_record(text, tuning_digest(record.key));
  EXPECT_THAT(parsed.status().message(), ::testing::HasSubstr("65537 findings"));
  record.rejected.assign(count, record.rejected[0]);
  EXPECT_EQ(format_record(record).status().message(), "timed and rejected have 65537 findings; allowed: at most 65536");
}

TEST(TuningRecordFileTest, RoundTrip) {
  TuningRecord record = sample_record(
      {{sample_config(64), kWorkload, "s1", 12.25, 0.5}, {sample_config(128), kWorkload, "s2", 10.125, 0.25}});
  record.timed[1].baseline = {sample_config(64), "s1", 12.5};
  record.rejected = {{sample_config(256), "s3", "spill", "stores 128 bytes"},
                     {sample_config(512), "", "shared_memory", "too much"}};
  record.heuristic = sample_config(64);
  record.winner = sample_config(128);
  record.environment = {{"driver", "580.1"}, {"nvrtc", "13.0"}, {"library", "0.1.0"}, {"date", "2025-01-01"}};
  const auto text = format_record(record);
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto parsed = parse_record(*text, tuning_digest(record.key));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, record);
  EXPECT_FALSE(parse_record(*text, std::string(64, '0')).ok());
}

TEST(TuningRecordFileTest, WhatIsOfDeterministicKernelsSaysSo) {
  TuningRecord record = sample_record({{sample_config(64), kWorkload, "s1", 12.25, 0.5}});
  EXPECT_THAT(*format_record(record), ::testing::Not(HasSubstr("deterministic"))) << "older libraries read it";
  record.key.deterministic = true;
  const auto parsed = parse_record(*format_record(record), tuning_digest(record.key));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed->key.deterministic);
}

TEST(TuningRecordFileTest, RefusesTimesAndConfigsThatAreNone) {
  EXPECT_THAT(format_record(sample_record({{"text", kWorkload, "s", 1, 0}})).status().message(), HasSubstr("config"));
  EXPECT_FALSE(format_record(sample_record({{sample_config(64), kWorkload, "s", 0, 0}})).ok());
  EXPECT_FALSE(format_record(sample_record({{sample_config(64), kWorkload, "s", std::nan(""), 0}})).ok());
  EXPECT_THAT(format_record(sample_record({{sample_config(64), kWorkload, "s", 1, 0, {sample_config(32), "s", 0}}}))
                  .status()
                  .message(),
              HasSubstr("baseline.median_us is 0"));
  TuningRecord record = sample_record({});
  record.rejected = {{sample_config(64), "", "", "no name"}};
  EXPECT_THAT(format_record(record).status().message(), HasSubstr("reason"));
}

TEST(TuningRecordFileTest, ARecordOfBeforeThatRuleIsReadAsTheRejection) {
  TuningRecord record =
      sample_record({{sample_config(64), kWorkload, "s1", 20, 1}, {sample_config(128), kWorkload, "s2", 10, 1}});
  record.rejected = {{sample_config(128), "s3", "wrong_result", "by far"}};
  record.winner = sample_config(128);
  const auto parsed = parse_record(*format_record(record), tuning_digest(record.key));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->timed.size(), 1u);
  EXPECT_EQ(parsed->winner, sample_config(64));
}

}  // namespace
}  // namespace hstujit
