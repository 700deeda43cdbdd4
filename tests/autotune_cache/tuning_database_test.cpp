#include "autotune_cache/tuning_database.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <set>

#include "autotune_cache/checked_json.h"
#include "cache_fixture.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string path_of(const std::string& root) {
  const std::string digest = tuning_digest(sample_tuning_key());
  return root + "/v1/tuning/" + digest.substr(0, 2) + "/" + digest + ".json";
}

using TuningDatabaseTest = CacheTest;

TEST(TuningRecordTest, EachFieldChangesTheKey) {
  std::vector<TuningKey> keys(13, sample_tuning_key());
  keys[1].op = "layer_norm";
  keys[2].spec = R"({"heads":8})";
  keys[3].direction = "backward";
  keys[4].device = "NVIDIA H100";
  keys[5].arch = "sm_90";
  keys[6].sm_count = 114;
  keys[7].bucket = 2048;
  keys[8].batch_class = BatchClass::kSmall;
  keys[9].deterministic = true;
  keys[10] = keys[8];
  keys[10].deterministic = true;
  keys[11].batch_class = BatchClass::kShortSequences;
  keys[12] = keys[11];
  keys[12].deterministic = true;
  std::set<std::string> digests;
  for (const TuningKey& key : keys) digests.insert(tuning_digest(key));
  EXPECT_EQ(digests.size(), keys.size());
}

// Records that were made before there were classes of batches are found.
TEST(TuningRecordTest, AKeyOfAnyBatchSaysNothingOfClasses) {
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

TEST_F(TuningDatabaseTest, SaysWhatItCouldNotKeepUntilItHas) {
  const TuningRecord record = sample_record({{sample_config(64), kWorkload, "s", 20, 1}});
  TuningDatabase database(CacheDirectories{.user = path("user"), .read_only = {}}, log());
  EXPECT_EQ(database.not_kept().entries, 0);
  {
    std::ofstream(path("user")) << "no folder";
  }
  ASSERT_TRUE(database.add(record).ok());
  EXPECT_EQ(database.not_kept().entries, 1);
  EXPECT_THAT(database.not_kept().reason, HasSubstr(path("user")));
  fs::remove(path("user"));
  ASSERT_TRUE(database.add(record).ok());
  EXPECT_EQ(database.not_kept().entries, 0);
  TuningDatabase none(CacheDirectories{.user = {}, .read_only = {path("user")}}, log());
  ASSERT_TRUE(none.add(sample_record({{sample_config(64), kWorkload, "s", 10, 1}})).ok());
  EXPECT_EQ(none.not_kept().reason,
            "there is no cache directory: HSTUJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are all unset; set "
            "HSTUJIT_CACHE_DIR");
}

TEST(TuningRecordTest, WinnerIsTheLeastMedian) {
  EXPECT_EQ(select_winner(sample_record({})), "");
  EXPECT_EQ(select_winner(sample_record(
                {{sample_config(64), kWorkload, "s", 20, 1}, {sample_config(128), kWorkload, "s", 10, 1}})),
            sample_config(128));
}

TEST(TuningRecordTest, HeuristicIsDisplacedOnlyBeyondNoise) {
  TuningRecord record =
      sample_record({{sample_config(64), kWorkload, "s", 10.5, 0.3}, {sample_config(128), kWorkload, "s", 10.0, 0.3}});
  record.heuristic = sample_config(64);
  EXPECT_EQ(select_winner(record), sample_config(64));
  record.timed[0].median_us = 10.7;
  EXPECT_EQ(select_winner(record), sample_config(128));
}

TEST(TuningRecordTest, TimesOfTwoRunsAreComparedByTheirRatiosToOneBaseline) {
  // The second run's clock was 5 % slower: 128 took 0.9 of the baseline, 256 took 0.88 of it.
  TuningRecord record = sample_record({{sample_config(64), kWorkload, "s", 105, 0, {sample_config(64), "s", 105}},
                                       {sample_config(128), kWorkload, "s", 90, 0, {sample_config(64), "s", 100}},
                                       {sample_config(256), kWorkload, "s", 92.4, 0, {sample_config(64), "s", 105}}});
  EXPECT_EQ(select_winner(record), sample_config(256));
  EXPECT_DOUBLE_EQ(record.drift(record.timed[1]), 1.05);
  EXPECT_DOUBLE_EQ(record.drift(record.timed[2]), 1);
  // Without the baseline's own time the two still share it.
  record.timed.erase(record.timed.begin());
  EXPECT_EQ(select_winner(record), sample_config(256));
  record.timed[0].baseline.source_digest = "another";
  EXPECT_EQ(select_winner(record), sample_config(128)) << "no common baseline: by the microseconds";
  record.timed[0].baseline = {};
  EXPECT_EQ(select_winner(record), sample_config(128)) << "of a library before this field";
}

TEST(TuningRecordTest, TimesOfNoKernelAreABadRecord) {
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

TEST(TuningRecordTest, FieldsOfAnotherTypeAreABadRecordThatNamesThem) {
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
  EXPECT_THAT(with("/winner", {{"median_us", 20}}).message(), HasSubstr("winner has no config"));
  record.winner.clear();
  EXPECT_TRUE(with("/workload", "w").ok()) << "of an unfinished run";
}

// A file may claim so many, of any configs: what is asked of it takes seconds and not minutes.
TEST(TuningRecordTest, AsManyFindingsAsAreReadTakeNoMinutes) {
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

TEST(TuningRecordTest, TheHeuristicStaysWithinTheNoiseThatIsLeftAfterTheDrift) {
  TuningRecord record = sample_record({{sample_config(64), kWorkload, "s", 105, 0.3, {sample_config(64), "s", 105}},
                                       {sample_config(128), kWorkload, "s", 99.8, 0.3, {sample_config(64), "s", 100}}});
  record.heuristic = sample_config(64);
  EXPECT_EQ(select_winner(record), sample_config(64)) << "0.2 % faster, not 5 %";
}

TEST(TuningRecordTest, ConfigsAreComparedAsJson) {
  EXPECT_TRUE(same_config(R"({"a":1,"b":2})", R"({ "b": 2, "a": 1 })"));
  EXPECT_TRUE(same_config(R"({"a":1})", R"({"a":1.0})"));
  EXPECT_TRUE(same_config(R"({"a":10})", R"({"a":1e1})"));
  EXPECT_TRUE(same_config(R"({"a":"b"})", R"({"a":"\u0062"})"));
  EXPECT_FALSE(same_config(R"({"a":1})", R"({"a":2})"));
  EXPECT_FALSE(same_config(R"({"a":12})", R"({"a":21})"));
  EXPECT_FALSE(same_config("not json", "nor this"));
}

// Not each of one against each of the other, reading their configs again and again: that took minutes.
TEST(TuningRecordTest, RecordsOfThousandsOfFindingsAreMerged) {
  TuningRecord older = sample_record({}), newer = older;
  for (int64_t i = 0; i < 8000; ++i) {
    (i % 2 == 0 ? older : newer).timed.push_back({sample_config(i), kWorkload, "s", 100, 0, {}});
    newer.rejected.push_back({sample_config(100'000 + i), "s", "spill", ""});
    // Whose text does not say whether two are the same.
    newer.rejected.push_back({R"({"block_m":)" + std::to_string(i) + ".5}", "s", "spill", ""});
  }
  const auto merged = merge_records(older, newer);
  ASSERT_TRUE(merged.ok()) << merged.status().message();
  EXPECT_EQ(merged->timed.size(), 8000u);
  EXPECT_EQ(merged->rejected.size(), 16000u);
}

TEST(TuningRecordTest, MoreFindingsThanAnyTuningMakesAreNoRecord) {
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

TEST(TuningRecordTest, RoundTrip) {
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

TEST(TuningRecordTest, WhatIsOfDeterministicKernelsSaysSo) {
  TuningRecord record = sample_record({{sample_config(64), kWorkload, "s1", 12.25, 0.5}});
  EXPECT_THAT(*format_record(record), ::testing::Not(HasSubstr("deterministic"))) << "older libraries read it";
  record.key.deterministic = true;
  const auto parsed = parse_record(*format_record(record), tuning_digest(record.key));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed->key.deterministic);
}

// Records outlive libraries: a key of before a field was added has the digest of before.
TEST(TuningRecordTest, DigestsStayAsTheyAre) {
  EXPECT_EQ(tuning_digest(sample_tuning_key()), "7fbdd7bbd137964ca4975127b33032a6bc3c4652f4e883e18bb10e369df785f3");
}

TEST(TuningRecordTest, RefusesTimesAndConfigsThatAreNone) {
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

TEST(TuningRecordTest, MergeKeepsOldTimingsAndTakesNewOnes) {
  TuningRecord older =
      sample_record({{sample_config(64), kWorkload, "s1", 20, 1}, {sample_config(128), kWorkload, "s2", 10, 1}});
  older.rejected = {{sample_config(256), "s3", "hang", "no end"}, {sample_config(32), "s4", "spill", "64 bytes"}};
  older.environment = {{"driver", "1"}, {"nvrtc", "12.8"}};
  TuningRecord newer =
      sample_record({{sample_config(64), kWorkload, "s1b", 5, 1}, {sample_config(256), kWorkload, "s3b", 8, 1}});
  newer.rejected = {{sample_config(16), "s5", "wrong_result", "off by 3"}};
  newer.environment = {{"driver", "2"}};
  const auto merged = merge_records(older, newer);
  ASSERT_TRUE(merged.ok());
  ASSERT_EQ(merged->timed.size(), 3u);
  EXPECT_EQ(merged->timed[0].source_digest, "s1b");
  EXPECT_EQ(merged->timed[1], older.timed[1]);
  EXPECT_EQ(merged->winner, sample_config(64));
  ASSERT_EQ(merged->rejected.size(), 2u);
  EXPECT_EQ(merged->rejected[0].reason, "spill");
  EXPECT_EQ(merged->rejected[1].reason, "wrong_result");
  EXPECT_EQ(merged->environment.at("driver"), "2");
  EXPECT_EQ(merged->environment.at("nvrtc"), "12.8");
  // Nothing new: nothing changes.
  EXPECT_EQ(*merge_records(*merged, *merged), *merged);

  TuningRecord other = newer;
  other.key.bucket = 1;
  EXPECT_EQ(merge_records(older, other).status().code(), Code::kInvalidArgument);
}

TEST(TuningRecordTest, ATimingHoldsAsLongAsItsSource) {
  const TuningRecord record = sample_record({{sample_config(64), kWorkload, "s1", 20, 1}});
  EXPECT_NE(record.valid_timing(sample_config(64), "s1", kWorkload), nullptr);
  EXPECT_EQ(record.valid_timing(sample_config(64), "s2", kWorkload), nullptr);
  EXPECT_EQ(record.valid_timing(sample_config(128), "s1", kWorkload), nullptr);
  EXPECT_EQ(record.valid_timing(sample_config(64), "s1", "another batch"), nullptr);
}

TEST(TuningRecordTest, ARejectionHoldsAsLongAsItsSource) {
  TuningRecord record = sample_record({});
  record.rejected = {{sample_config(64), "s1", "spill", "16 bytes"},
                     {sample_config(32), "s2", "failed", "busy"},
                     {sample_config(16), "", "shared_memory", "too much"}};
  EXPECT_NE(record.valid_rejection(sample_config(64), "s1"), nullptr);
  EXPECT_EQ(record.valid_rejection(sample_config(64), "s2"), nullptr);
  EXPECT_EQ(record.valid_rejection(sample_config(128), "s1"), nullptr);
  EXPECT_EQ(record.valid_rejection(sample_config(32), "s2"), nullptr) << "that may have been the moment";
  EXPECT_EQ(record.valid_rejection(sample_config(16), ""), nullptr) << "no source to compare";
}

TEST(TuningRecordTest, TimesOfTwoWorkloadsAreKeptAndNeverCompared) {
  const TuningRecord older =
      sample_record({{sample_config(64), kWorkload, "s1", 20, 1}, {sample_config(128), kWorkload, "s2", 10, 1}});
  TuningRecord newer =
      sample_record({{sample_config(64), "small", "s1", 2, 0.1}, {sample_config(128), "small", "s2", 3, 0.1}});
  newer.workload = "small";
  const auto merged = merge_records(older, newer);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->timed.size(), 4u);
  EXPECT_EQ(merged->workload, "small");
  EXPECT_EQ(merged->winner, sample_config(64)) << "the fastest of the workload that was tuned last";
  EXPECT_EQ(merged->timing(sample_config(128))->median_us, 3);
  EXPECT_EQ(merged->timings().size(), 2u);
  const auto back = merge_records(*merged, older);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->timed.size(), 4u);
  EXPECT_EQ(back->winner, sample_config(128)) << "and not the 2 us of another batch";
}

TEST(TuningRecordTest, TheWinnerOfManyRowsStays) {
  TuningRecord many =
      sample_record({{sample_config(64), kWorkload, "s1", 20, 1}, {sample_config(128), kWorkload, "s2", 10, 1}});
  many.rows = 1000;
  many.winner = sample_config(128);
  const auto batch = [](int64_t rows) {
    TuningRecord record =
        sample_record({{sample_config(64), "small", "s1", 2, 0.1}, {sample_config(128), "small", "s2", 3, 0.1}});
    record.workload = "small";
    record.rows = rows;
    return record;
  };
  const auto merged = merge_records(many, batch(249));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->winner, sample_config(128));
  EXPECT_EQ(merged->workload, kWorkload);
  EXPECT_EQ(merged->rows, 1000);
  EXPECT_EQ(merged->timed.size(), 4u);
  const auto stored = parse_record(*format_record(*merged), tuning_digest(merged->key));
  ASSERT_TRUE(stored.ok()) << stored.status().message();
  EXPECT_EQ(stored->rows, 1000);

  // A quarter of the rows decides, and so does whoever has more, or says no number.
  EXPECT_EQ(merge_records(many, batch(250))->winner, sample_config(64));
  EXPECT_EQ(merge_records(batch(249), many)->winner, sample_config(128));
  EXPECT_EQ(merge_records(many, batch(0))->winner, sample_config(64));
  many.rows = 0;
  EXPECT_EQ(merge_records(many, batch(1))->winner, sample_config(64));

  // A row of quarters does not lead to few rows.
  many.rows = 1000;
  const auto half = merge_records(many, batch(300));
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->rows, 1000);
  TuningRecord few = batch(80);
  few.workload = "few";
  for (TimedCandidate& candidate : few.timed) candidate.workload = "few";
  EXPECT_EQ(merge_records(*half, few)->workload, "small");
  many.rows = 1003;
  EXPECT_EQ(merge_records(many, batch(250))->workload, kWorkload) << "less than a quarter";
  for (const int64_t rows : {int64_t{-1}, kMostRows + 1, std::numeric_limits<int64_t>::max()}) {
    many.rows = rows;
    const auto text = format_record(many);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(parse_record(*text, tuning_digest(many.key))->rows, 0) << rows;
  }

  // Once its winner is known to be wrong the others decide, and with no time left the fewer rows do.
  many.rows = 1000;
  TuningRecord wrong = batch(1);
  wrong.rejected = {{sample_config(128), "s2", "wrong_result", "by far"}};
  wrong.timed.pop_back();
  EXPECT_EQ(merge_records(many, wrong)->winner, sample_config(64));
  EXPECT_EQ(merge_records(many, wrong)->workload, kWorkload);
  wrong.rejected.push_back({sample_config(64), "s1", "wrong_result", "by far"});
  wrong.timed = {{sample_config(256), "small", "s3", 2, 0.1}};
  EXPECT_EQ(merge_records(many, wrong)->winner, sample_config(256));
  EXPECT_EQ(merge_records(many, wrong)->rows, 1);
}

TEST(TuningRecordTest, ARejectionThatLastsEndsAllTimesOfItsConfig) {
  const TuningRecord timed =
      sample_record({{sample_config(64), kWorkload, "s1", 20, 1}, {sample_config(128), kWorkload, "s2", 10, 1}});
  TuningRecord busy = sample_record({});
  busy.rejected = {{sample_config(128), "s2", "failed", "busy"}};
  EXPECT_EQ(merge_records(timed, busy)->timed.size(), 2u);
  EXPECT_EQ(merge_records(timed, busy)->winner, sample_config(128));
  TuningRecord wrong = sample_record({});
  wrong.rejected = {{sample_config(128), "s2", "wrong_result", "by far"}};
  EXPECT_EQ(merge_records(timed, wrong)->timed.size(), 1u);
  EXPECT_EQ(merge_records(timed, wrong)->winner, sample_config(64));
  TuningRecord both = timed;
  both.timed.push_back({sample_config(128), "small", "s2", 1, 0});
  wrong.rejected[0].source_digest = "s3";
  EXPECT_EQ(merge_records(both, wrong)->timed.size(), 1u) << "those of an older source, and on another workload, too";
  EXPECT_EQ(merge_records(both, wrong)->winner, sample_config(64));
  const auto repaired = merge_records(*merge_records(timed, wrong), timed);
  EXPECT_EQ(repaired->timed.size(), 2u) << "a newer time counts again";
  EXPECT_TRUE(repaired->rejected.empty());
}

TEST(TuningRecordTest, ARecordOfBeforeThatRuleIsReadAsTheRejection) {
  TuningRecord record =
      sample_record({{sample_config(64), kWorkload, "s1", 20, 1}, {sample_config(128), kWorkload, "s2", 10, 1}});
  record.rejected = {{sample_config(128), "s3", "wrong_result", "by far"}};
  record.winner = sample_config(128);
  const auto parsed = parse_record(*format_record(record), tuning_digest(record.key));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->timed.size(), 1u);
  EXPECT_EQ(parsed->winner, sample_config(64));
}

TEST(TuningRecordTest, TheWinnerIsOfThoseThatCompeteAndTheRunsChoiceIsKept) {
  const TuningRecord older =
      sample_record({{sample_config(64), kWorkload, "old", 5, 1}, {sample_config(32), kWorkload, "new", 30, 1}});
  TuningRecord newer = sample_record({{sample_config(128), kWorkload, "new", 10, 1}});
  const auto of_today = [](const TimedCandidate& timing) { return timing.source_digest == "new"; };
  EXPECT_EQ(select_winner(*merge_records(older, newer), of_today), sample_config(128));
  EXPECT_EQ(select_winner(older, [](const TimedCandidate&) { return false; }), "");
  TuningRecord stale_heuristic = *merge_records(older, newer);
  stale_heuristic.heuristic = sample_config(64);
  EXPECT_EQ(select_winner(stale_heuristic, of_today), sample_config(128)) << "its time is of another source";

  newer.winner = sample_config(128);
  EXPECT_EQ(merge_records(older, newer)->winner, sample_config(128));
  EXPECT_EQ(merge_records(older, newer)->timed.size(), 3u) << "the others are kept";
  newer.winner = sample_config(256);
  EXPECT_EQ(merge_records(older, newer)->winner, sample_config(64)) << "nobody has timed what it says";
}

TEST_F(TuningDatabaseTest, AddsAndFinds) {
  TuningDatabase database(user_only(), log());
  EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
  ASSERT_TRUE(database.add(sample_record({{sample_config(64), kWorkload, "s1", 20, 1}})).ok());
  const auto merged = database.add(sample_record({{sample_config(128), kWorkload, "s2", 10, 1}}));
  ASSERT_TRUE(merged.ok());
  TuningDatabase again(user_only(), log());
  const auto found = again.find(sample_tuning_key());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, *merged);
  EXPECT_EQ(found->timed.size(), 2u);
  EXPECT_EQ(found->winner, sample_config(128));
  EXPECT_EQ(again.list().size(), 1u);
}

TEST_F(TuningDatabaseTest, ReadOnlyRecordsAreTheBaseOfTheUsers) {
  {
    ASSERT_TRUE(TuningDatabase(CacheDirectories{.user = path("shipped"), .read_only = {}}, log())
                    .add(sample_record({{sample_config(64), kWorkload, "s1", 20, 1}}))
                    .ok());
  }
  TuningDatabase database(CacheDirectories{.user = path("user"), .read_only = {path("shipped")}}, log());
  EXPECT_EQ(database.find(sample_tuning_key())->winner, sample_config(64));
  ASSERT_TRUE(database.add(sample_record({{sample_config(128), kWorkload, "s2", 10, 1}})).ok());
  EXPECT_EQ(database.find(sample_tuning_key())->timed.size(), 2u);
  EXPECT_EQ(TuningDatabase(CacheDirectories{.user = path("shipped"), .read_only = {}}, log())
                .find(sample_tuning_key())
                ->timed.size(),
            1u);
}

TEST_F(TuningDatabaseTest, ARecordThatIsOfNoUseHidesNoneOfALaterLayer) {
  const auto add = [&](const char* directory, int block_m) {
    TuningDatabase database(CacheDirectories{.user = path(directory), .read_only = {}}, log());
    ASSERT_TRUE(database.add(sample_record({{sample_config(block_m), kWorkload, "s", 10, 1}})).ok());
  };
  for (const auto& [directory, block_m] : {std::pair("user", 1), std::pair("bad", 2), std::pair("shipped", 3)})
    add(directory, block_m);
  ASSERT_TRUE(write_file_atomically(path_of(path("bad")), "{}").ok());
  TuningDatabase database(CacheDirectories{.user = path("user"), .read_only = {path("bad"), path("shipped")}}, log());
  std::vector<std::string> offered;
  const auto found = database.find(sample_tuning_key(), [&](const TuningRecord& record) {
    offered.push_back(record.winner);
    return same_config(record.winner, sample_config(3));
  });
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(same_config(found->winner, sample_config(3)));
  EXPECT_EQ(offered.size(), 2u) << "the user's, then the shipped one; the bad one is no record";
  EXPECT_EQ(events("bad_record"), 1);
  EXPECT_FALSE(database.find(sample_tuning_key(), [](const TuningRecord&) { return false; }).has_value());
}

TEST_F(TuningDatabaseTest, DamagedRecordsAreLoggedMissesAndRepaired) {
  const std::string file = path_of(path("user"));
  const TuningRecord record = sample_record({{sample_config(64), kWorkload, "s1", 20, 1}});
  const std::string sound = *format_record(record);
  std::string flipped = sound;
  flipped[flipped.find("20.0")] = '1';
  for (const std::string& text : {std::string(), sound.substr(0, sound.size() / 2), flipped, std::string("{}")}) {
    lines_.clear();
    ASSERT_TRUE(make_directories(fs::path(file).parent_path()).ok());
    ASSERT_TRUE(write_file_atomically(file, text).ok());
    TuningDatabase database(user_only(), log());
    EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
    EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
    EXPECT_EQ(events("bad_record"), 1);
    ASSERT_TRUE(database.add(record).ok());
    EXPECT_TRUE(database.find(sample_tuning_key()).has_value());
  }
  fs::remove(file);
  ASSERT_TRUE(make_directories(file).ok());
  TuningDatabase database(user_only(), log());
  EXPECT_FALSE(database.find(sample_tuning_key()).has_value());
  ASSERT_TRUE(database.add(record).ok());
  EXPECT_TRUE(database.find(sample_tuning_key()).has_value());
}

TEST_F(TuningDatabaseTest, VerifyReadsRecords) {
  TuningDatabase database(user_only(), log());
  ASSERT_TRUE(database.add(sample_record({{sample_config(1), kWorkload, "s", 10, 1}})).ok());
  const auto problems = [&] {
    std::vector<std::string> all;
    for (const VerifiedFile& file : gather(database.layers(), &CacheLayer::verify)) all.push_back(file.problem);
    return all;
  };
  EXPECT_THAT(problems(), ::testing::ElementsAre(""));
  const std::string text = *whole_file(path_of(path("user")));
  ASSERT_TRUE(write_file_atomically(path_of(path("user")), text.substr(0, text.size() / 2)).ok());
  EXPECT_THAT(problems(), ::testing::ElementsAre(HasSubstr("it is no JSON object that is whole")));
  const fs::path folder = fs::path(path_of(path("user"))).parent_path();
  const std::string digest = tuning_digest(sample_tuning_key());
  ASSERT_TRUE(write_file_atomically(folder / "notes.txt", "mine").ok());
  ASSERT_TRUE(write_file_atomically(folder.parent_path() / (digest + ".json"), text).ok());
  EXPECT_THAT(problems(),
              ::testing::UnorderedElementsAre(HasSubstr("it is no JSON object that is whole"),
                                              HasSubstr("not a file of the cache"), HasSubstr("in the wrong folder")));
}

TEST_F(TuningDatabaseTest, WithoutADirectoryTheMergeStillCounts) {
  ASSERT_TRUE(write_file_atomically(path("user"), "a file").ok());
  for (const CacheDirectories& directories : {CacheDirectories{}, user_only()}) {
    TuningDatabase database(directories, log());
    const auto merged = database.add(sample_record({{sample_config(64), kWorkload, "s1", 20, 1}}));
    ASSERT_TRUE(merged.ok());
    EXPECT_EQ(merged->winner, sample_config(64));
  }
  EXPECT_EQ(events("directory_not_used"), 1);
  EXPECT_EQ(events("directory_not_writable"), 0);
}

TEST_F(TuningDatabaseTest, ProcessesAddToOneRecord) {
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      TuningDatabase database(user_only(), Log());
      ::_exit(database.add(sample_record({{sample_config(i), kWorkload, "s", 10.0 + i, 0}})).ok() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto found = TuningDatabase(user_only(), log()).find(sample_tuning_key());
  ASSERT_TRUE(found.has_value());
  for (int i = 0; i < kProcesses; ++i) {
    const TimedCandidate* timing = found->timing(sample_config(i));
    ASSERT_NE(timing, nullptr) << "the update of process " << i << " is lost";
    EXPECT_EQ(timing->median_us, 10.0 + i);
  }
  EXPECT_EQ(events("bad_record"), 0);
}

}  // namespace
}  // namespace hstujit
