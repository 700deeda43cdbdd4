// Who chooses kernels where only deterministic ones may be: over the skeletons of tests/plan/fake_skeletons.cpp, of
// which the tile of 128 rows is fastest and not deterministic, and that of 64 rows is.
#include "runtime/engine/frozen_choices.h"
#include "tests/runtime/tuner_fixture.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBucket = 1024;
constexpr Restriction kFree = {}, kDeterministic = {.deterministic = true};

class RestrictionTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    spec_ = make_instance().spec;
  }

  static KernelConfig tile(int64_t rows) {
    KernelConfig config;
    config.skeleton = "fake/usable";
    config.attention().block_m = rows;
    return config;
  }
  TuningKey key(const Restriction& restriction, const std::string& device = "H200") const {
    return tuning_key(*spec_, Direction::kForward, *known_device(device), bucket_, restriction);
  }
  void record(const Restriction& restriction, int64_t winner) {
    TuningRecord record;
    record.key = key(restriction);
    record.workload = "batch";
    record.timed = {{key_text(tile(winner)), "batch", "source", 10, 0.1}};
    ASSERT_TRUE(make_engine()->tuning().add(record).ok());
  }
  Result<KernelChoice> choose(const Restriction& restriction, const std::string& device = "H200") {
    return choose_kernel(*make_engine(), *spec_, Direction::kForward, *known_device(device), bucket_, restriction);
  }
  void expect_choice(const Restriction& restriction, int64_t rows, bool tuned, const std::string& device = "H200") {
    const auto choice = choose(restriction, device);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    EXPECT_EQ(choice->config.attention().block_m, rows);
    EXPECT_EQ(choice->tuned, tuned);
  }
  static Config config_of(const std::string& tuning) {
    auto config = parse_config(R"({"version": 1, "device": "H200", "tuning": {)" + tuning +
                                   R"(}, "ops": [{"name": "test", "op": "hstu_attention", "heads": 2, "attn_dim": 64,
        "hidden_dim": 64, "lengths": [5, 0, 130], "max_seq_len": 1024}]})",
                               "test", "");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }

  OpSpecPtr spec_;
  ProblemBucket bucket_ = kBucket;
};

TEST_F(RestrictionTest, TheHeuristicKnowsIt) {
  expect_choice(kFree, 128, false);
  expect_choice(kDeterministic, 64, false);
}

TEST_F(RestrictionTest, AWinnerThatIsNotDeterministicDoesNotServe) {
  record(kFree, 128);
  expect_choice(kFree, 128, true);
  expect_choice(kDeterministic, 64, false);
  expect_choice(kFree, 128, false, "H20");
  expect_choice(kDeterministic, 64, false, "H20");
  EXPECT_EQ(choose(kFree, "H20")->nearest, "NVIDIA H200");
  EXPECT_EQ(choose(kDeterministic, "H20")->nearest, "") << "nor that of a near device";
}

TEST_F(RestrictionTest, AWinnerOfAllKernelsServesWhereItIsDeterministic) {
  record(kFree, 64);
  expect_choice(kDeterministic, 64, true);
  EXPECT_EQ(choose(kDeterministic, "H20")->nearest, "NVIDIA H200");
}

TEST_F(RestrictionTest, EachHasItsOwnWinner) {
  record(kFree, 128);
  record(kDeterministic, 64);
  expect_choice(kFree, 128, true);
  expect_choice(kDeterministic, 64, true);
}

TEST_F(RestrictionTest, AWinnerOfSmallBatchesServesOnlyThose) {
  bucket_.batch_class = BatchClass::kSmall;
  record(kFree, 64);
  expect_choice(kFree, 64, true);
  expect_choice(kDeterministic, 64, true);
  bucket_.batch_class = BatchClass::kAny;
  expect_choice(kFree, 128, false);
  expect_choice(kDeterministic, 64, false);
}

TEST_F(RestrictionTest, AFrozenChoiceThatIsNotDeterministicIsRefused) {
  const std::string file = (folder_->path() / "choices.json").string();
  values_["HSTUJIT_FROZEN"] = file;
  ASSERT_TRUE(write_file_atomically(file, *format_choices({{key(kFree), tile(128)}})).ok());
  expect_choice(kFree, 128, true);
  const Status status = choose(kDeterministic).status();
  EXPECT_EQ(status.code(), Code::kUnsupported) << "the file and the config are good each for itself";
  EXPECT_THAT(status.message(), HasSubstr("gives results that differ in their last bits from run to run"));
  ASSERT_TRUE(
      write_file_atomically(file, *format_choices({{key(kFree), tile(128)}, {key(kDeterministic), tile(64)}})).ok());
  expect_choice(kFree, 128, true);
  expect_choice(kDeterministic, 64, true);
}

TEST_F(RestrictionTest, AnOverrideIsNoWayAroundIt) {
  values_["HSTUJIT_OVERRIDE"] = R"({"block_m": 128})";
  expect_choice(kFree, 128, false);
  const Status status = choose(kDeterministic).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("deterministic ones are asked for"));
}

TEST_F(RestrictionTest, ConfigsAndTheEnvironmentAskForIt) {
  const Config free = config_of(""), restricted = config_of(R"("deterministic": true)");
  const auto explained = [&](const Config& config) {
    const OperationResult result = explain(*make_engine(), config, {});
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    return result.report;
  };
  EXPECT_EQ(explained(free)["deterministic"], false);
  EXPECT_EQ(explained(free)["instances"][0]["config"]["block_m"], 128);
  EXPECT_EQ(explained(free)["instances"][0]["launch"]["following"], Json::array({"fake_convert"}));
  const Json report = explained(restricted);
  EXPECT_EQ(report["deterministic"], true);
  EXPECT_EQ(report["instances"][0]["config"]["block_m"], 64);
  EXPECT_EQ(report["instances"][0]["search_space"]["reasons"]["deterministic"], 2);
  EXPECT_EQ(report["instances"][0]["launch"]["workspace"], false);
  EngineOptions options = engine_options();
  options.deterministic = true;
  EXPECT_TRUE((*Engine::create(options))->deterministic());
  values_["HSTUJIT_DETERMINISTIC"] = "1";
  EXPECT_EQ(explained(free)["instances"][0]["config"]["block_m"], 64);
  values_["HSTUJIT_DETERMINISTIC"] = "perhaps";
  EXPECT_THAT(Engine::create(engine_options()).status().message(), HasSubstr("HSTUJIT_DETERMINISTIC is \"perhaps\""));
}

TEST_F(RestrictionTest, AnOpsMissesSayIt) {
  const std::string file = (folder_->path() / "misses").string();
  values_["HSTUJIT_RECORD"] = file;
  const auto engine = make_engine();
  for (const Restriction& restriction : {kFree, kDeterministic}) {
    const auto op =
        Op::create(engine, {make_instance(), Direction::kForward, Backend::kCuda, LengthMode::kPow2, {}, restriction});
    ASSERT_TRUE(op.ok());
    ASSERT_TRUE((*op)->prepare(kBucket, 0).ok());
  }
  const auto recording = load_recording(file);
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  ASSERT_EQ(recording->misses.size(), 2u) << "two keys";
  EXPECT_FALSE(recording->misses[0].key.deterministic);
  EXPECT_TRUE(recording->misses[1].key.deterministic);
  EXPECT_NE(recording->config.instances[0].name, recording->config.instances[1].name);
  EXPECT_EQ(Json::parse(format_miss(recording->misses[0])).count("deterministic"), 0u);
  Json wrong = Json::parse(format_miss(recording->misses[1]));
  wrong["deterministic"] = "yes";
  EXPECT_EQ(parse_miss(wrong.dump()).status().message(), "deterministic is no boolean");
}

using RestrictedTunerTest = TunerTest;

TEST_F(RestrictedTunerTest, TimesOnlyWhatMayWin) {
  bench_.duration = [](const KernelConfig& config) { return config.attention().block_m == 128 ? 1.0 : 2.0; };
  auto tuned = tune();
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_EQ(tuned->winner.attention().block_m, 128);
  bench_.loaded.clear();
  problem_.restriction.deterministic = true;
  tuned = tune();
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_EQ(tuned->winner.attention().block_m, 64);
  EXPECT_EQ(tuned->candidates, 2);
  for (const KernelConfig& config : bench_.loaded) EXPECT_EQ(config.attention().block_m, 64);
  EXPECT_TRUE(tuned->record.key.deterministic);
  EXPECT_THAT(stored().winner.text(), HasSubstr("128")) << "the winner of all kernels stays";
}

}  // namespace
}  // namespace hstujit::test
