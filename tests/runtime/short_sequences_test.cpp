// Kernels of their own for batches of short sequences: which launches get them, what they are where nothing was tuned,
// what keys, records, bundles and reports say.
#include "compiler/spec/short_sequences.h"

#include <fmt/format.h>

#include <numeric>

#include "autotune_cache/store/bundle_transfer.h"
#include "operations/configs/operation.h"
#include "runtime/dispatch/batch_classes.h"
#include "runtime/dispatch/kernel_supply.h"
#include "runtime/dispatch/miss_record.h"
#include "runtime/engine/frozen_choices.h"
#include "tests/runtime/support.h"
#include "tests/runtime/winners.h"

namespace hstujit::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ProblemBucket kShort1024{1024, BatchClass::kShortSequences};

class ShortSequencesTest : public RuntimeTest {
 protected:
  static Config config_of(const std::string& extra = "", int64_t longest = 1024) {
    auto config = parse_config(R"({"version": 1, "ops": [{"name": "one", "op": "hstu_attention", "heads": 1,
        "attn_dim": 64, "hidden_dim": 64, "max_seq_len": [64, )" +
                                   std::to_string(longest) + "]" + extra + "}]}",
                               "test", "");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }
  static Instance instance_of(const std::string& extra = "") { return config_of(extra).instances[0]; }
  static std::unique_ptr<Op> op_of(const EnginePtr& engine, const Instance& instance = instance_of()) {
    auto op = Op::create(engine, {instance, Direction::kForward, Backend::kCuda, LengthMode::kPow2, {}});
    EXPECT_TRUE(op.ok()) << op.status().message();
    return std::move(*op);
  }
  static std::vector<std::string> labels_of(const Json& rows) {
    std::vector<std::string> labels;
    for (const Json& row : rows)
      labels.push_back(row["bucket"].dump() + (row.contains("short_sequences") ? " short" : ""));
    return labels;
  }

  // Threads of a block of the launch of sequences of these lengths.
  static unsigned threads_of(const Op& op, const std::vector<int64_t>& rows) {
    FakeLaunch launch(instance_of(), {.rows = rows, .num_targets = {}, .max_seq_len = 1024});
    fake().threads = 0;
    const Status status = op.launch(launch.values.data(), launch.values.size(), nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    return fake().threads;
  }

  // One consumer packs sequences, where asked to, and two do not.
  static KernelConfig tile(int64_t consumers, bool packed = false) {
    KernelConfig config = forward_tile(consumers);
    config.attention().pack_sequences = packed;
    if (packed) config.attention().schedule = "persistent";
    return config;
  }
  static void tune_to(Engine& engine, const ProblemBucket& bucket, const KernelConfig& config,
                      const std::string& device = "") {
    const DeviceSpec where = device.empty() ? *engine.device(0) : *known_device(device);
    ASSERT_TRUE(add_winner(engine, tuning_key(*instance_of().spec, Direction::kForward, where, bucket), config).ok());
  }
  static KernelChoice choice(Engine& engine, const ProblemBucket& bucket) {
    const auto choice = choose_kernel(engine, *instance_of().spec, Direction::kForward, *engine.device(0), bucket);
    EXPECT_TRUE(choice.ok()) << choice.status().message();
    return choice.ok() ? *choice : KernelChoice();
  }
};

TEST_F(ShortSequencesTest, AMeanOfATileIsShort) {
  EXPECT_TRUE(has_short_sequences(4, 256));
  EXPECT_FALSE(has_short_sequences(4, 257));
  EXPECT_TRUE(has_short_sequences(3, 0)) << "no rows at all";
  EXPECT_FALSE(has_short_sequences(0, 0)) << "no sequence at all";
  EXPECT_FALSE(has_short_sequences(0, 300));
  EXPECT_FALSE(has_short_sequences(1, std::numeric_limits<int64_t>::max()));
  const BatchClasses both{4, true}, neither;
  EXPECT_EQ(both.of(4, 4), BatchClass::kSmall);
  EXPECT_EQ(both.of(5, 5), BatchClass::kShortSequences);
  EXPECT_EQ(both.of(5, 1000), BatchClass::kAny);
  EXPECT_EQ(neither.of(5, 5), BatchClass::kAny);
}

TEST_F(ShortSequencesTest, BucketsHaveThemWhereAKernelMayPack) {
  const auto has = [](const Json& json, Direction direction, int64_t bucket, const char* device) {
    auto instance = parse_instance(json, "test", "");
    EXPECT_TRUE(instance.ok()) << instance.status().message();
    return batch_classes(*instance, direction, bucket, *known_device(device)).short_sequences;
  };
  const Json attention = {{"name", "a"},
                          {"op", "hstu_attention"},
                          {"heads", 1},
                          {"attn_dim", 64},
                          {"hidden_dim", 64},
                          {"max_seq_len", 1024},
                          {"directions", {"forward", "backward"}}};
  EXPECT_TRUE(has(attention, Direction::kForward, 1024, "sm_90a"));
  EXPECT_TRUE(has(attention, Direction::kBackward, 1024, "sm_90a"));
  EXPECT_TRUE(has(attention, Direction::kForward, 65, "sm_90a"));
  EXPECT_FALSE(has(attention, Direction::kForward, 64, "sm_90a")) << "all are short there";
  EXPECT_FALSE(has(attention, Direction::kForward, 1024, "sm_80"));
  Json other = attention;
  other["dtype"] = "fp32";
  EXPECT_FALSE(has(other, Direction::kForward, 1024, "sm_90a"));
  other = attention;
  other["rab_heads"] = 1;
  EXPECT_FALSE(has(other, Direction::kForward, 1024, "sm_90a"));
  other = attention;
  other["op"] = "norm_attention";
  EXPECT_TRUE(has(other, Direction::kForward, 1024, "sm_90a")) << "a program, for its step";
  EXPECT_FALSE(has({{"name", "n"}, {"op", "layer_norm"}, {"width", 64}, {"rows", 10}}, Direction::kForward,
                   kSingleBucket, "sm_90a"));
}

TEST_F(ShortSequencesTest, RowsAndSequencesOfALaunchChooseItsKernel) {
  const auto engine = make_engine();
  const CurrentContext context(*engine);
  tune_to(*engine, 1024, tile(2));
  tune_to(*engine, kShort1024, tile(1, true));
  const auto op = op_of(engine);
  ASSERT_TRUE(op->prepare(1024, -1).ok());
  const unsigned packed = 128 + 32, others = 2 * 128 + 128;
  EXPECT_EQ(threads_of(*op, {100, 1, 90, 65}), packed);
  EXPECT_EQ(threads_of(*op, {100, 1, 90, 66}), others);
  EXPECT_EQ(threads_of(*op, {64}), packed);
  EXPECT_EQ(threads_of(*op, {65}), others);
  EXPECT_EQ(threads_of(*op, {0, 0}), 0u) << "nothing to launch";
  EXPECT_EQ(threads_of(*op, {}), 0u);
}

TEST_F(ShortSequencesTest, OneKernelForBothIsCompiledAndLoadedOnce) {
  const auto engine = make_engine();
  tune_to(*engine, 1024, tile(2));
  tune_to(*engine, kShort1024, tile(2));
  ASSERT_TRUE(op_of(engine)->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 1);
  EXPECT_EQ(fake().module_loads, 1);
  const auto other = make_engine();
  tune_to(*other, kShort1024, tile(1, true));
  ASSERT_TRUE(op_of(other)->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 2) << "the other one is in the cache";
  EXPECT_EQ(fake().module_loads, 3);
}

TEST_F(ShortSequencesTest, WithoutARecordTheCostModelPacksShortOnesAlone) {
  const auto engine = make_engine();
  EXPECT_EQ(choice(*engine, kShort1024).source, ChoiceSource::kHeuristic);
  EXPECT_TRUE(choice(*engine, kShort1024).config.attention().pack_sequences);
  EXPECT_FALSE(choice(*engine, 1024).config.attention().pack_sequences);
}

TEST_F(ShortSequencesTest, TheOthersRecordServesWhereItAgreesInPacking) {
  const auto engine = make_engine();
  tune_to(*engine, 1024, tile(2));
  const KernelChoice own = choice(*engine, kShort1024);
  EXPECT_EQ(own.source, ChoiceSource::kHeuristic);
  EXPECT_TRUE(own.config.attention().pack_sequences);
  EXPECT_THAT(own.why, HasSubstr("not what other batches have, which is not for short sequences (bucket 1024: "));

  tune_to(*engine, 256, tile(1, true));
  const KernelChoice theirs = choice(*engine, {256, BatchClass::kShortSequences});
  EXPECT_EQ(theirs.source, ChoiceSource::kOtherBatches);
  EXPECT_FALSE(theirs.tuned);
  EXPECT_EQ(theirs.config, tile(1, true));
  EXPECT_THAT(theirs.why, AllOf(HasSubstr("untuned for bucket 256 short sequences"), HasSubstr("10.0 us")));

  tune_to(*engine, {512, BatchClass::kShortSequences}, tile(1, true));
  EXPECT_EQ(choice(*engine, 512).source, ChoiceSource::kHeuristic) << "others are not packed";
  tune_to(*engine, {2048, BatchClass::kShortSequences}, tile(2));
  EXPECT_EQ(choice(*engine, 2048).config, tile(2));
}

// Small CTAs by mma.sync are for short sequences, too: tiles that were measured are better than an estimate.
TEST_F(ShortSequencesTest, TheOthersRecordOfSmallCtasServesWhereTheCostModelPacks) {
  KernelConfig small_ctas;
  small_ctas.skeleton = "attention/sm80_forward";
  small_ctas.attention().schedule = "per_sequence";
  small_ctas.attention().block_m = small_ctas.attention().block_n = 16;
  small_ctas.attention().stages = 2;
  small_ctas.attention().warps = 1;
  small_ctas.attention().blocks_per_sm = 8;
  const auto engine = make_engine();
  ASSERT_TRUE(choice(*engine, kShort1024).config.attention().pack_sequences);
  tune_to(*engine, 1024, small_ctas);
  EXPECT_EQ(choice(*engine, kShort1024).source, ChoiceSource::kOtherBatches);
  EXPECT_EQ(choice(*engine, kShort1024).config, small_ctas);
}

TEST_F(ShortSequencesTest, ARecordOfTheClassComesFirstWhereverItIsFrom) {
  const auto engine = make_engine();
  tune_to(*engine, 1024, tile(1, true));
  tune_to(*engine, kShort1024, tile(2), "H200");
  const KernelChoice near = choice(*engine, kShort1024);
  EXPECT_EQ(near.source, ChoiceSource::kNearDevice);
  EXPECT_EQ(near.config, tile(2));
  tune_to(*engine, kShort1024, tile(1));
  EXPECT_EQ(choice(*engine, kShort1024).config, tile(1));
  EXPECT_TRUE(choice(*engine, kShort1024).tuned);
}

TEST_F(ShortSequencesTest, WhatIsForcedIsForAllBatches) {
  values_["HSTUJIT_OVERRIDE"] = to_json(tile(2)).dump();
  const auto engine = make_engine();
  EXPECT_EQ(choice(*engine, 1024).config, tile(2));
  EXPECT_EQ(choice(*engine, kShort1024).config, tile(2));
}

TEST_F(ShortSequencesTest, OneChoiceOfAnEarlierFrozenFileServesAll) {
  const auto key = tuning_key(*instance_of().spec, Direction::kForward, *make_engine()->device(0), 1024);
  const std::string file = (folder_->path() / "choices.json").string();
  ASSERT_TRUE(write_file_atomically(file, *format_choices({{key, tile(2)}})).ok());
  values_["HSTUJIT_FROZEN"] = file;
  const auto engine = make_engine();
  EXPECT_EQ(choice(*engine, kShort1024).config, tile(2));
  EXPECT_TRUE(choice(*engine, kShort1024).tuned);
}

TEST_F(ShortSequencesTest, ABundleHasBothKernels) {
  for (const bool both : {true, false}) {
    values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / (both ? "both" : "one")).string();
    values_.erase("HSTUJIT_CACHE_PATH");
    values_.erase("HSTUJIT_ON_MISS");
    const auto engine = make_engine();
    const Instance instance = instance_of();
    if (both) {
      ASSERT_TRUE(prewarm(*engine, config_of(), {}).status.ok());
    } else {  // as an earlier library has it
      ASSERT_TRUE(supply_kernel(*engine, instance.spec, Direction::kForward, *engine->device(0), 1024, {},
                                choice(*engine, 1024), Supply::kMake)
                      .ok());
    }
    const auto exported = export_bundle(engine->kernels().store().layers(), {}, engine->tuning().layers());
    ASSERT_TRUE(exported.ok()) << exported.status().message();
    const std::string bundle = (folder_->path() / "bundle").string();
    ASSERT_TRUE(write_file_atomically(bundle, exported->packed.bytes).ok());

    values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "serving").string();
    values_["HSTUJIT_CACHE_PATH"] = bundle;
    values_["HSTUJIT_ON_MISS"] = "fail";
    const auto serving = make_engine();
    const Status status = op_of(serving)->prepare(1024, 0);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(choice(*serving, kShort1024).config.attention().pack_sequences, both);
    EXPECT_EQ(choice(*serving, kShort1024).source, both ? ChoiceSource::kHeuristic : ChoiceSource::kOtherBatches);
  }
}

TEST_F(ShortSequencesTest, OwnLengthsAreOfOneClassAndTuneIt) {
  const auto tuned = [&](const std::string& extra) {
    return labels_of(tune(*make_engine(), config_of(extra, 256), {}).report["keys"]);
  };
  EXPECT_THAT(tuned(""), ElementsAre("64", "256", "256 short"));
  EXPECT_THAT(tuned(R"(, "lengths": [100, 20])"), ElementsAre("64", "256 short"));
  EXPECT_THAT(tuned(R"(, "lengths": [100, 29])"), ElementsAre("64", "256"));
  EXPECT_THAT(tuned(R"(, "lengths": {"low": 0.0, "high": 0.4})"), ElementsAre("64", "256 short"));
  EXPECT_THAT(labels_of(explain(*make_engine(), config_of(R"(, "lengths": [100, 20])", 256), {}).report["instances"]),
              ElementsAre("64", "256", "256 short"))
      << "prepared are both";
}

TEST_F(ShortSequencesTest, WhatNothingIsTimedForIsNoUntunedMiss) {
  values_["HSTUJIT_RECORD"] = (folder_->path() / "misses").string();
  ASSERT_TRUE(op_of(make_engine(), instance_of(R"(, "lengths": [100, 20])"))->prepare(1024, 0).ok());
  const auto recording = load_recording(values_["HSTUJIT_RECORD"]);
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  ASSERT_EQ(recording->misses.size(), 2u);
  for (const MissRecord& miss : recording->misses) {
    const bool is_short = miss.key.batch_class == BatchClass::kShortSequences;
    EXPECT_EQ(miss.reason, is_short ? MissReason::kUntuned : MissReason::kUncompiled);
    const auto read = parse_miss(format_miss(miss));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, miss);
  }
  Json none = Json::parse(format_miss(recording->misses[0]));
  none["short_sequences"] = true;
  none["bucket"] = none["length"] = 64;
  EXPECT_THAT(parse_recording(none.dump(), "r").status().message(),
              HasSubstr("has one kernel for all batches of bucket 64"));
  Json both = Json::parse(format_miss(recording->misses[0]));
  both["small_batch"] = both["short_sequences"] = true;
  EXPECT_THAT(parse_miss(both.dump()).status().message(), HasSubstr("small_batch and short_sequences are both true"));
}

TEST_F(ShortSequencesTest, TheirTimesAreOfShortSequences) {
  const DeviceSpec device = *known_device("sm_90a");
  const auto lengths = [&](const std::string& extra) {
    return tuning_lengths(instance_of(extra), Direction::kForward, kShort1024, device);
  };
  EXPECT_EQ(lengths(R"(, "lengths": [100, 20])").rows, (std::vector<int64_t>{100, 20}));
  const Lengths drawn = lengths(R"(, "num_targets": 7)");
  EXPECT_EQ(static_cast<int64_t>(drawn.rows.size()), kShortBatch);
  EXPECT_TRUE(has_short_sequences(kShortBatch, drawn.total_rows()));
  EXPECT_GT(*std::max_element(drawn.rows.begin(), drawn.rows.end()), 512);
  EXPECT_FALSE(std::is_sorted(drawn.rows.begin(), drawn.rows.end()));
  EXPECT_EQ(drawn.num_targets.size(), drawn.rows.size());
  EXPECT_EQ(lengths(R"(, "num_targets": 7)").rows, drawn.rows);
}

TEST_F(ShortSequencesTest, TheHeuristicsBatchFollowsFromTheBucket) {
  for (const int64_t bucket : {65, 128, 256, 1024, 131072}) {
    const ProblemSize size = heuristic_size({bucket, BatchClass::kShortSequences});
    const int64_t rows = std::accumulate(size.lengths.begin(), size.lengths.end(), int64_t{0});
    const double mean = static_cast<double>(rows) / static_cast<double>(size.lengths.size());
    EXPECT_NEAR(mean, static_cast<double>(std::min<int64_t>(bucket / 8, 48)), 1.5) << bucket;
    EXPECT_DOUBLE_EQ(size.mean_fill * static_cast<double>(bucket), mean);
    EXPECT_TRUE(std::is_sorted(size.lengths.begin(), size.lengths.end()));
    EXPECT_GE(size.lengths.front(), 1);
    EXPECT_LE(size.lengths.back(), bucket);
    EXPECT_EQ(heuristic_size({bucket, BatchClass::kShortSequences}).lengths, size.lengths);
  }
  EXPECT_EQ(heuristic_size(kShortMeanRows).batch, kShortBatch) << "there is no such class, since all are short";
  EXPECT_EQ(heuristic_size(kShortMeanRows + 1).batch, ProblemSize{}.batch);
  EXPECT_EQ(heuristic_size(kSingleBucket).batch, ProblemSize{}.batch) << "it says no length";
  EXPECT_EQ(typical_short_lengths(256, 8), (std::vector<int64_t>{1, 2, 4, 6, 12, 25, 57, 149}));
}

TEST_F(ShortSequencesTest, RunsAndTimingsSayWhichKernelTheyHad) {
  EXPECT_EQ(to_string(kShort1024), "1024 short sequences");
  OperationOptions options;
  options.repeats = 1;
  for (const auto& [lengths, is_short] : {std::pair{"[5, 40]", true}, {"[100, 50]", false}}) {
    const Config config = config_of(fmt::format(R"(, "lengths": {})", lengths));
    const Json ran = run(make_engine(), config, {}).report, timed = bench(make_engine(), config, options).report;
    for (const Json& row : ran["runs"]) {
      EXPECT_EQ(row.contains("short_sequences"), is_short && row["max_seq_len"] == 1024) << row.dump();
    }
    for (const Json& row : timed["results"]) {
      EXPECT_EQ(row.contains("short_sequences"), is_short && row["max_seq_len"] == 1024) << row.dump();
    }
  }
}

}  // namespace
}  // namespace hstujit::test
