// Keys, winners and merges of tuning records.
#include "autotune_cache/records/tuning_record.h"

#include <gtest/gtest.h>

#include <set>

#include "cache_fixture.h"
#include "compiler/support/json.h"

namespace hstujit {
namespace {

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

TEST(TuningRecordTest, TheHeuristicStaysWithinTheNoiseThatIsLeftAfterTheDrift) {
  TuningRecord record = sample_record({{sample_config(64), kWorkload, "s", 105, 0.3, {sample_config(64), "s", 105}},
                                       {sample_config(128), kWorkload, "s", 99.8, 0.3, {sample_config(64), "s", 100}}});
  record.heuristic = sample_config(64);
  EXPECT_EQ(select_winner(record), sample_config(64)) << "0.2 % faster, not 5 %";
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

// Records outlive libraries: a key of before a field was added has the digest of before.
TEST(TuningRecordTest, DigestsStayAsTheyAre) {
  EXPECT_EQ(tuning_digest(sample_tuning_key()), "7fbdd7bbd137964ca4975127b33032a6bc3c4652f4e883e18bb10e369df785f3");
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

}  // namespace
}  // namespace hstujit
