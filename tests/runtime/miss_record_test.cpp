// Recorded misses: whole keys, by any number of processes, and what tuning makes of them.
#include "runtime/dispatch/miss_record.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "compiler/support/read_limits.h"
#include "operations/configs/operation.h"
#include "tests/runtime/support.h"
#include "tests/support/whole_file.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

class MissRecordTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    recording_ = (folder_->path() / "misses").string();
    values_["HSTUJIT_RECORD"] = recording_;
  }

  static std::unique_ptr<Op> op_of(const EnginePtr& engine, LengthMode mode) {
    auto op = Op::create(engine, {make_instance(), Direction::kForward, Backend::kCuda, mode, {}});
    EXPECT_TRUE(op.ok()) << op.status().message();
    return std::move(*op);
  }

  MissRecord miss(int64_t bucket = 256) const {
    return {tuning_key(*make_instance().spec, Direction::kForward, *known_device("sm_90a"), bucket), bucket,
            LengthMode::kPow2, MissReason::kUntuned};
  }

  Recording recorded() const {
    auto recording = load_recording(recording_);
    EXPECT_TRUE(recording.ok()) << recording.status().message();
    return recording.ok() ? std::move(*recording) : Recording();
  }

  // A record of `bucket` whose winner is `config`, timed on a batch of nobody's.
  TuningKey tune_elsewhere(Engine& engine, int64_t bucket, const KernelConfig& config) {
    TuningRecord record;
    record.key = tuning_key(*make_instance().spec, Direction::kForward, *engine.device(0), bucket);
    record.workload = "a model's lengths";
    record.timed = {{to_json(config).dump(), record.workload, "a source", 10, 0.1}};
    record.winner = record.timed.front().config;
    EXPECT_TRUE(engine.tuning().add(record).ok());
    return record.key;
  }
  KernelConfig some_config(Engine& engine, int64_t bucket) {
    const auto space =
        search_space(*make_instance().spec, Direction::kForward, *engine.device(0), heuristic_size(bucket));
    return space.candidates.at(2).config;
  }

  std::string recording_;
};

TEST_F(MissRecordTest, ALineHoldsTheWholeKeyAndHowItCameAbout) {
  MissRecord full = miss(10240);
  full.key.batch_class = BatchClass::kSmall;
  full.key.deterministic = true;
  full.length_mode = LengthMode::kFine;
  full.reason = MissReason::kUncompiled;
  const auto read = parse_miss(format_miss(full));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, full);
  EXPECT_EQ(Json::parse(format_miss(full))["hstujit_miss"], kMissVersion);
}

TEST_F(MissRecordTest, EveryFieldIsAskedFor) {
  const Json whole = Json::parse(format_miss(miss()));
  for (const auto& [name, value] : whole.items()) {
    Json without = whole;
    without.erase(name);
    EXPECT_FALSE(parse_miss(without.dump()).ok()) << name;
    Json wrong = whole;
    wrong[name] = nullptr;
    EXPECT_FALSE(parse_miss(wrong.dump()).ok()) << name;
  }
  Json newer = whole;
  newer["hstujit_miss"] = 2;
  EXPECT_EQ(parse_miss(newer.dump()).status().message(), "hstujit_miss is 2; allowed: 1");
}

TEST_F(MissRecordTest, ARecordingAsksForTheBucketThatWasMissedInWhicheverMode) {
  ASSERT_TRUE(op_of(make_engine(), LengthMode::kFine)->prepare(9000, 0).ok());
  ASSERT_TRUE(op_of(make_engine(), LengthMode::kExact)->prepare(100, 0).ok());
  values_["HSTUJIT_LENGTH_MODE"] = "pow2";
  const Recording recording = recorded();
  ASSERT_EQ(recording.misses.size(), 2u);
  EXPECT_EQ(recording.misses[0].key.bucket, 10240);
  EXPECT_EQ(recording.misses[0].length_mode, LengthMode::kFine);
  EXPECT_EQ(recording.misses[0].reason, MissReason::kUntuned);
  const auto engine = make_engine();
  OperationOptions options;
  options.op_name = recording.config.instances[1].name;
  const OperationResult result = tune_recording(*engine, recording, options);
  ASSERT_EQ(result.report["keys"].size(), 1u);
  EXPECT_EQ(result.report["keys"][0]["bucket"], 100) << "the mode of today would make 128 of it";
  // The fake GPU writes no output, so that the first check ends the tuning.
  EXPECT_EQ(result.status.code(), Code::kCheckFailed);
  EXPECT_THAT(result.status.message(), HasSubstr(recording.origin + ":2: " + options.op_name + " forward"));
  EXPECT_GT(fake().launches, 0);
  EXPECT_EQ(recording.misses[1].key, tuning_key(*make_instance().spec, Direction::kForward, *engine->device(0), 100));
}

TEST_F(MissRecordTest, AnEngineRecordsAKeyOnce) {
  const auto engine = make_engine();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(op_of(engine, LengthMode::kPow2)->prepare(256, 0).ok());
  const auto text = whole_file(recording_);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), 1);
}

TEST_F(MissRecordTest, ATunedKeyWithoutItsCubinIsCompiledAndNotTimed) {
  const auto engine = make_engine();
  const KernelConfig winner = some_config(*engine, 256);
  const TuningKey key = tune_elsewhere(*engine, 256, winner);
  ASSERT_TRUE(op_of(engine, LengthMode::kPow2)->prepare(256, 0).ok());
  const Recording recording = recorded();
  ASSERT_EQ(recording.misses.size(), 1u);
  EXPECT_EQ(recording.misses[0].reason, MissReason::kUncompiled);

  values_["HSTUJIT_CACHE_DIR"] = (folder_->path() / "other").string();
  const auto other = make_engine();
  tune_elsewhere(*other, 256, winner);
  const int compiles = compiler_->compiles;
  for (const char* outcome : {"compiled", "hit"}) {
    const OperationResult result = tune_recording(*other, recording, {});
    ASSERT_TRUE(result.status.ok()) << result.status.message();
    EXPECT_EQ(result.report["keys"][0]["outcome"], outcome);
    EXPECT_EQ(result.report["keys"][0]["winner"], to_json(winner));
  }
  EXPECT_EQ(compiler_->compiles, compiles + 1);
  EXPECT_EQ(fake().launches, 0);
  EXPECT_EQ(other->tuning().find(key)->workload, "a model's lengths");
}

TEST_F(MissRecordTest, AKeyThatWasTunedMeanwhileOnOtherLengthsKeepsItsWinner) {
  const auto engine = make_engine();
  ASSERT_TRUE(op_of(engine, LengthMode::kPow2)->prepare(256, 0).ok());
  const TuningKey key = tune_elsewhere(*engine, 256, some_config(*engine, 256));
  const OperationResult result = tune_recording(*engine, recorded(), {});
  ASSERT_TRUE(result.status.ok()) << result.status.message();
  EXPECT_EQ(result.report["keys"][0]["reason"], "untuned");
  EXPECT_EQ(result.report["keys"][0]["outcome"], "compiled");
  EXPECT_EQ(fake().launches, 0);
  EXPECT_EQ(engine->tuning().find(key)->workload, "a model's lengths");
}

TEST_F(MissRecordTest, KeysOfAnotherDeviceAreLeft) {
  MissRecord other = miss();
  other.key.device = "NVIDIA Example";
  const auto engine = make_engine();
  engine->record_miss(format_miss(other));
  const OperationResult result = tune_recording(*engine, recorded(), {});
  EXPECT_TRUE(result.status.ok()) << result.status.message();
  EXPECT_EQ(result.report["keys"][0]["outcome"], "other_device");
  EXPECT_EQ(result.report["keys"][0]["device"], "NVIDIA Example");
  EXPECT_EQ(fake().launches, 0);
  EXPECT_EQ(compiler_->compiles, 0);
}

TEST_F(MissRecordTest, ManyProcessesThatAppendAtOnceLoseNothing) {
  constexpr int kProcesses = 6, kKeys = 40;
  int start[2];
  ASSERT_EQ(::pipe(start), 0);
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(start[1]);
      char byte = 0;
      const ssize_t closed = ::read(start[0], &byte, 1);  // returns when the parent lets all of them go
      const auto engine = make_engine();
      for (int key = 1; key <= kKeys; ++key) {
        MissRecord missed = miss(key);
        missed.length_mode = LengthMode::kExact;
        engine->record_miss(format_miss(missed));
        engine->record_miss(format_miss(missed));
      }
      ::_exit(closed == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  ::close(start[0]);
  ::close(start[1]);
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto text = whole_file(recording_);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(std::count(text->begin(), text->end(), '\n'), kProcesses * kKeys);
  const Recording recording = recorded();
  EXPECT_EQ(recording.warning, "");
  ASSERT_EQ(recording.misses.size(), static_cast<size_t>(kKeys));
  std::set<int64_t> buckets;
  for (const MissRecord& miss : recording.misses) buckets.insert(miss.key.bucket);
  EXPECT_EQ(*buckets.begin(), 1);
  EXPECT_EQ(*buckets.rbegin(), kKeys);
}

// A record for such a bucket would never be found.
TEST_F(MissRecordTest, ABucketThatNoLookUpAsksForIsSkipped) {
  const auto warning = [](const MissRecord& miss) {
    const auto recording = parse_recording(format_miss(miss), "r");
    return recording.ok() ? "" : recording.status().message();
  };
  EXPECT_EQ(warning(miss(256)), "");
  MissRecord longer = miss(64);
  longer.length = int64_t{1} << 28;
  EXPECT_EQ(warning(longer),
            "no recorded miss is left: r:1: length is 268435456; it must be the bucket, 64; the line is skipped");
  EXPECT_THAT(warning(miss(65)), HasSubstr("bucket is 65, which length_mode pow2 gives to no length"));
  for (const LengthMode mode : {LengthMode::kExact, LengthMode::kStatic}) {
    MissRecord any = miss(65);
    any.length_mode = mode;
    EXPECT_EQ(warning(any), "");
  }
  MissRecord fine = miss(10240);
  EXPECT_THAT(warning(fine), HasSubstr("bucket is 10240"));
  fine.length_mode = LengthMode::kFine;
  EXPECT_EQ(warning(fine), "");
}

TEST_F(MissRecordTest, TornAndForeignLinesAreSkippedWithOneWarning) {
  const std::string good = format_miss(miss());
  const auto recording =
      parse_recording("\n" + good + "\n" + good.substr(0, 80) + "\n{\"name\": \"old\"}\n[1]\n" + good, "misses");
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  EXPECT_EQ(recording->misses.size(), 1u);
  EXPECT_EQ(recording->warning, "misses:3: no whole line of HSTUJIT_RECORD; this and 2 more lines are skipped");
  MissRecord unknown = miss();
  unknown.key.spec = R"({"op":"hstu_attention","limbs":2})";
  const auto one = parse_recording(good + "\n" + format_miss(unknown) + "\n", "misses");
  ASSERT_TRUE(one.ok());
  EXPECT_THAT(one->warning, HasSubstr("misses:2: spec"));
  EXPECT_THAT(one->warning, HasSubstr("limbs"));
  EXPECT_THAT(one->warning, HasSubstr("the line is skipped"));
}

TEST_F(MissRecordTest, ALineThatIsRepeatedIsReadOnce) {
  const std::string good = format_miss(miss());
  const auto recording = parse_recording(good + "\n[1]\n" + good + "\n[1]\n[1]\n", "misses");
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  EXPECT_EQ(recording->misses.size(), 1u);
  EXPECT_EQ(recording->warning, "misses:2: no whole line of HSTUJIT_RECORD; the line is skipped");
}

TEST_F(MissRecordTest, ARecordingAsksForNoMoreKernelsThanAConfig) {
  MissRecord again = miss(64);
  again.length_mode = LengthMode::kExact;
  const std::string of_two = format_miss(miss(64)) + "\n" + format_miss(miss(128)) + "\n" + format_miss(again) + "\n";
  const auto whole = parse_recording(of_two, "misses", 2);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  EXPECT_EQ(whole->warning, "");
  const auto cut = parse_recording(of_two + format_miss(miss(256)) + "\n" + format_miss(miss(512)), "misses", 2);
  ASSERT_TRUE(cut.ok()) << cut.status().message();
  EXPECT_EQ(cut->misses.size(), 2u);
  EXPECT_EQ(cut->warning, "misses:4: 2 kernels are the most of a recording; those that follow are left out");
}

// One that a reader would refuse whole.
TEST_F(MissRecordTest, ARecordingGrowsToNoMoreThanIsRead) {
  static_assert(kMaxRecordedBytes < kMaxRecordingBytes);
  const auto engine = make_engine();
  engine->record_miss(format_miss(miss(64)));
  const auto before = std::filesystem::file_size(recording_);
  EXPECT_GT(before, 0u);
  std::filesystem::resize_file(recording_, kMaxRecordedBytes - before);
  engine->record_miss(format_miss(miss(128)));
  EXPECT_EQ(std::filesystem::file_size(recording_), kMaxRecordedBytes - before);
}

TEST_F(MissRecordTest, AKeyOfBothReasonsIsUntuned) {
  MissRecord uncompiled = miss();
  uncompiled.reason = MissReason::kUncompiled;
  const auto recording = parse_recording(format_miss(uncompiled) + "\n" + format_miss(miss()) + "\n", "misses");
  ASSERT_TRUE(recording.ok());
  ASSERT_EQ(recording->misses.size(), 1u);
  EXPECT_EQ(recording->misses[0].reason, MissReason::kUntuned);
}

TEST_F(MissRecordTest, AFileWithoutMissesIsRefused) {
  EXPECT_EQ(parse_recording("\n", "r").status().message(), "r: no recorded miss in it");
  EXPECT_EQ(parse_recording("{}\n", "r").status().message(),
            "no recorded miss is left: r:1: no whole line of HSTUJIT_RECORD; the line is skipped");
  EXPECT_EQ(load_recording("/nonexistent/misses").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hstujit::test
