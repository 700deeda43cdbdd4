// Kernels of their own for small batches: which launches get them, what keys, records, recordings and reports say.
#include "compiler/spec/small_batch.h"

#include <fmt/format.h>

#include "operations/configs/operation.h"
#include "runtime/dispatch/batch_classes.h"
#include "runtime/dispatch/miss_record.h"
#include "tests/runtime/support.h"
#include "tests/runtime/winners.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

// The fake GPU has 132 multiprocessors.
class SmallBatchTest : public RuntimeTest {
 protected:
  static Instance instance_of(bool small_batches, int64_t max_seq_len = 1024) {
    Json json = {{"name", "one"},
                 {"op", "hstu_attention"},
                 {"heads", 4},
                 {"attn_dim", 32},
                 {"hidden_dim", 32},
                 {"max_seq_len", max_seq_len},
                 {"small_batches", small_batches}};
    auto instance = parse_instance(json, "test", "");
    EXPECT_TRUE(instance.ok()) << instance.status().message();
    return *instance;
  }
  static std::unique_ptr<Op> op_of(const EnginePtr& engine, const Instance& instance) {
    auto op = Op::create(engine, {instance, Direction::kForward, Backend::kCuda, LengthMode::kPow2, {}});
    EXPECT_TRUE(op.ok()) << op.status().message();
    return std::move(*op);
  }
  static Config config_of(const std::string& extra,
                          const std::string& sizes = R"("heads": 4, "max_seq_len": [512, 600, 1024, 8192])") {
    auto config = parse_config(R"({"version": 1, "ops": [{"name": "one", "op": "hstu_attention", "attn_dim": 16,
        "hidden_dim": 16, )" + sizes +
                                   ", " + extra + "}]}",
                               "test", "");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }
  // On four multiprocessors 1024 rows are no small batch, as 8192 rows of four heads are none on 132; the reference of
  // what is tuned or run takes a tenth of the time.
  static constexpr const char* kFewRows = R"("heads": 1, "max_seq_len": [128, 150, 256, 1024])";
  static std::vector<std::string> labels_of(const Json& rows) {
    std::vector<std::string> labels;
    for (const Json& row : rows) {
      const char* const batches = row.contains("small_batch")       ? " small"
                                  : row.contains("short_sequences") ? " short"
                                                                    : "";
      labels.push_back(row["max_seq_len"].dump() + batches);
    }
    return labels;
  }

  // Threads of a block of the launch of so many sequences.
  unsigned threads_of(const Op& op, const Instance& instance, size_t sequences) {
    Lengths lengths{.rows = std::vector<int64_t>(sequences, 100), .num_targets = {}, .max_seq_len = 1024};
    FakeLaunch launch(instance, lengths);
    const Status status = op.launch(launch.values.data(), launch.values.size(), nullptr);
    EXPECT_TRUE(status.ok()) << status.message();
    return fake().threads;
  }

  // Each 64 rows have a warpgroup; one is loaded for by a warp, several by a warpgroup.
  void tune_to(Engine& engine, const ProblemBucket& bucket, int64_t consumers) {
    const TuningKey key = tuning_key(*instance_of(true).spec, Direction::kForward, *engine.device(0), bucket);
    ASSERT_TRUE(add_winner(engine, key, forward_tile(consumers)).ok());
  }
};

TEST_F(SmallBatchTest, TwoTilesOfAMultiprocessorAreFew) {
  const DeviceSpec device = *known_device("sm_90a");
  const Instance instance = instance_of(true);
  const OpSpec& spec = *instance.spec;
  EXPECT_EQ(max_small_batch(spec, Direction::kForward, 64, device.sm_count), 66);
  EXPECT_EQ(max_small_batch(spec, Direction::kForward, 1024, device.sm_count), 4);
  EXPECT_EQ(max_small_batch(spec, Direction::kForward, 1025, device.sm_count), 3);
  EXPECT_EQ(max_small_batch(spec, Direction::kForward, 4096, device.sm_count), 1);
  EXPECT_EQ(max_small_batch(spec, Direction::kForward, 8192, device.sm_count), 0);
  EXPECT_EQ(max_small_batch(spec, Direction::kBackward, 64, device.sm_count), 0);
  EXPECT_EQ(batch_classes(instance, Direction::kForward, 1024, device).max_small, 4);
  EXPECT_EQ(batch_classes(instance_of(false), Direction::kForward, 1024, device).max_small, 0);
}

TEST_F(SmallBatchTest, TheNumberOfSequencesOfALaunchChoosesItsKernel) {
  const auto engine = make_engine();
  const CurrentContext context(*engine);
  tune_to(*engine, 1024, 2);
  tune_to(*engine, {1024, BatchClass::kSmall}, 1);
  const Instance asks = instance_of(true), asks_not = instance_of(false);
  const auto op = op_of(engine, asks), other = op_of(engine, asks_not);
  ASSERT_TRUE(op->prepare(1024, -1).ok());
  ASSERT_TRUE(other->prepare(1024, -1).ok());
  const unsigned small = 128 + 32, large = 2 * 128 + 128;
  for (const size_t sequences : {1, 2, 4}) {
    EXPECT_EQ(threads_of(*op, asks, sequences), small) << sequences;
    EXPECT_EQ(threads_of(*other, asks_not, sequences), large) << sequences;
  }
  for (const size_t sequences : {5, 100}) EXPECT_EQ(threads_of(*op, asks, sequences), large) << sequences;
}

// A launch is refused by the same sentences, whichever kernel it would have had.
TEST_F(SmallBatchTest, OffsetsThatAreNoneChooseNothing) {
  const auto engine = make_engine();
  const CurrentContext context(*engine);
  const Instance instance = instance_of(true);
  const auto op = op_of(engine, instance);
  ASSERT_TRUE(op->prepare(1024, -1).ok());
  FakeLaunch launch(instance, {.rows = {10}, .num_targets = {}, .max_seq_len = 1024});
  launch.tensor("seq_offsets").ndim = 0;
  EXPECT_THAT(op->launch(launch.values.data(), launch.values.size(), nullptr).message(),
              HasSubstr("seq_offsets has rank 0"));
  launch.value("seq_offsets").tensor = nullptr;
  EXPECT_THAT(op->launch(launch.values.data(), launch.values.size(), nullptr).message(),
              HasSubstr("seq_offsets is a null pointer"));
  EXPECT_EQ(fake().launches, 0);
}

TEST_F(SmallBatchTest, UntunedTheColumnsOfFewTilesAreSharedOut) {
  const auto engine = make_engine();
  const CurrentContext context(*engine);
  const Instance instance = instance_of(true);
  const auto op = op_of(engine, instance);
  ASSERT_TRUE(op->prepare(1024, -1).ok());
  threads_of(*op, instance, 1);
  EXPECT_GT(fake().cluster, 1u);
  threads_of(*op, instance, 100);
  EXPECT_EQ(fake().cluster, 1u);
}

// The kernel of short sequences is the third.
TEST_F(SmallBatchTest, KernelsOfABucketAreCompiledSideBySide) {
  values_["HSTUJIT_COMPILE_JOBS"] = "2";
  compiler_->delay = std::chrono::milliseconds(200);
  const auto engine = make_engine();
  ASSERT_TRUE(op_of(engine, instance_of(true))->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 3);
  EXPECT_EQ(compiler_->max_at_once, 2);
  EXPECT_EQ(fake().module_loads, 3);
  ASSERT_TRUE(op_of(engine, instance_of(true, 8192))->prepare(8192, 0).ok());
  EXPECT_EQ(compiler_->compiles, 5) << "one sequence of 8192 rows is no small batch";
}

TEST_F(SmallBatchTest, AMissOfAnyKernelIsRecorded) {
  values_["HSTUJIT_RECORD"] = (folder_->path() / "misses").string();
  ASSERT_TRUE(op_of(make_engine(), instance_of(true, 128))->prepare(128, 0).ok());
  const auto recording = load_recording(values_["HSTUJIT_RECORD"]);
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  ASSERT_EQ(recording->misses.size(), 3u);
  std::set<BatchClass> classes;
  for (size_t i = 0; i < 3; ++i) {
    const MissRecord& miss = recording->misses[i];
    classes.insert(miss.key.batch_class);
    const auto read = parse_miss(format_miss(miss));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, miss);
    EXPECT_EQ(recording->config.instances[i].small_batches, miss.key.batch_class == BatchClass::kSmall);
  }
  EXPECT_EQ(classes.size(), kBatchClasses);
  const OperationResult tuned = tune_recording(*make_engine(), *recording, {});
  // The fake GPU writes no output; the keys are those of all.
  EXPECT_THAT(labels_of(tuned.report["keys"]), ::testing::UnorderedElementsAre("128", "128 small", "128 short"));
}

TEST_F(SmallBatchTest, WholeConfigsListAllKernelsOfABucket) {
  const Config config = config_of(R"("small_batches": true, "lengths": [5])"), without = config_of(R"("lengths": [5])");
  const auto engine = make_engine();
  const auto keys =
      ::testing::ElementsAre("512", "512 small", "512 short", "600", "600 small", "600 short", "8192", "8192 short");
  EXPECT_THAT(labels_of(prewarm(*engine, config, {}).report["instances"]), keys);
  EXPECT_THAT(labels_of(prewarm(*engine, without, {}).report["instances"]),
              ::testing::ElementsAre("512", "512 short", "600", "600 short", "8192", "8192 short"));
  EXPECT_THAT(labels_of(explain(*engine, config, {}).report["instances"]), keys);
  const OperationResult frozen = freeze(*engine, config, {});
  ASSERT_TRUE(frozen.status.ok()) << frozen.status.message();
  EXPECT_EQ(frozen.report["choices"].size(), 8u);
  const std::string file = (folder_->path() / "choices.json").string();
  ASSERT_TRUE(write_file_atomically(file, frozen.report.dump()).ok());
  values_["HSTUJIT_FROZEN"] = file;
  const auto again = make_engine();
  const auto choice = [&](const ProblemBucket& bucket) {
    return choose_kernel(*again, *config.instances[0].spec, Direction::kForward, *again->device(0), bucket)->config;
  };
  EXPECT_TRUE(choice({1024, BatchClass::kSmall}).attention().split_kv);
  EXPECT_FALSE(choice(1024).attention().split_kv);
}

TEST_F(SmallBatchTest, TheClassesOfTheConfigsLengthsAreTuned) {
  fake().multiprocessors = 4;
  const Config config = config_of(R"("small_batches": true, "lengths": [5])", kFewRows);
  EXPECT_THAT(labels_of(tune(*make_engine(), config, {}).report["keys"]),
              ::testing::ElementsAre("128 small", "128 short", "150 small", "150 short", "1024 short"))
      << "its lengths are short";
}

TEST_F(SmallBatchTest, RunsAndTimingsSayWhichKernelTheyHad) {
  fake().multiprocessors = 4;
  for (const auto& [lengths, small] : {std::pair{"[5, 128]", true}, {"[1, 2, 3, 4, 5, 6, 7, 8, 9]", false}}) {
    const Config config = config_of(fmt::format(R"("small_batches": true, "lengths": {})", lengths), kFewRows);
    const Json ran = run(make_engine(), config, {}).report;
    for (const Json& row : ran["runs"]) {
      EXPECT_EQ(row.contains("small_batch"), small && row["max_seq_len"] != 1024) << row.dump();
    }
    OperationOptions options;
    options.repeats = 1;
    const Json timed = bench(make_engine(), config, options).report;
    for (const Json& row : timed["results"]) {
      EXPECT_EQ(row.contains("small_batch"), small && row["max_seq_len"] != 1024) << row.dump();
    }
  }
}

// Times are of the instance's own batch where that is a small one, else of one sequence.
TEST_F(SmallBatchTest, TheirTimesAreOfSmallBatches) {
  const DeviceSpec device = *known_device("sm_90a");
  const auto lengths = [&](const std::string& extra, const ProblemBucket& bucket) {
    return tuning_lengths(config_of(extra).instances[0], Direction::kForward, bucket, device);
  };
  const std::string own = R"("small_batches": true, "lengths": [700, 30])";
  EXPECT_EQ(lengths(own, {1024, BatchClass::kSmall}).rows, (std::vector<int64_t>{700, 30}));
  const std::string many = R"("small_batches": true, "num_targets": 7)";
  EXPECT_EQ(lengths(many, {1024, BatchClass::kSmall}).rows, std::vector<int64_t>{1024});
  EXPECT_EQ(lengths(many, {1024, BatchClass::kSmall}).num_targets, std::vector<int64_t>{7});
  EXPECT_EQ(lengths(many, 1024).rows.size(), 256u);
}

}  // namespace
}  // namespace hstujit::test
