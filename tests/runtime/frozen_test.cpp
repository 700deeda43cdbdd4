// HSTUJIT_FROZEN: the choices of a file, and of nothing else.
#include <chrono>
#include <fstream>

#include "autotune_cache/files/checked_json.h"
#include "compiler/support/read_limits.h"
#include "operations/configs/operation.h"
#include "runtime/engine/frozen_choices.h"
#include "tests/runtime/support.h"
#include "tests/support/little_memory.h"

namespace hstujit::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class FrozenTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    file_ = (folder_->path() / "choices.json").string();
  }

  static Config config_of(const std::string& lengths = "128") {
    auto config = parse_config(R"({"version": 1, "device": "sm_90a", "ops": [{"name": "test", "op": "hstu_attention",
        "heads": 2, "attn_dim": 64, "hidden_dim": 64, "lengths": [5, 0, 90], "max_seq_len": [)" +
                                   lengths + "]}]}",
                               "test", "");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }

  // The device of config_of.
  static TuningKey key_of(int64_t bucket) {
    return tuning_key(*config_of().instances[0].spec, Direction::kForward, *known_device("sm_90a"), bucket);
  }

  Json frozen(const Config& config) {
    const OperationResult result = freeze(*make_engine(), config, {});
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    return result.report;
  }
  void write(const std::string& text) const { std::ofstream(file_) << text; }

  Result<EnginePtr> engine_with_file() {
    values_["HSTUJIT_FROZEN"] = file_;
    return Engine::create(engine_options());
  }

  // The second best of the cost model: nothing but a file or a record would choose it.
  static KernelConfig second_best() {
    return search_space(*config_of().instances[0].spec, Direction::kForward, *known_device("sm_90a"),
                        heuristic_size(128))
        .candidates.at(1)
        .config;
  }

  std::string file_;
};

TEST_F(FrozenTest, KeysWithoutAKernelAreListedAndNothingIsFrozen) {
  values_["HSTUJIT_OVERRIDE"] = R"({"blocks_per_sm": 31})";
  const OperationResult result = freeze(*make_engine(), config_of("128, 256"), {});
  EXPECT_FALSE(result.status.ok());
  EXPECT_FALSE(result.report.contains("choices")) << result.report.dump();
  ASSERT_EQ(result.report["failed"].size(), static_cast<size_t>(result.failures));
  ASSERT_GE(result.failures, 2);
  const Json& first = result.report["failed"][0];
  EXPECT_EQ(first["name"], "test");
  EXPECT_EQ(first["bucket"], 128);
  EXPECT_THAT(result.status.message(), HasSubstr(first["error"]["message"].get<std::string>()));
}

TEST_F(FrozenTest, TheFilesChoiceWinsOverRecordsAndCostModel) {
  const auto text = format_choices({{key_of(128), second_best()}});
  ASSERT_TRUE(text.ok());
  write(*text);
  const auto engine = engine_with_file();
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const Instance instance = config_of().instances[0];
  TuningRecord record;
  record.key = key_of(128);
  record.workload = "w";
  record.timed = {{R"({"skeleton":"hstu_attention/sm80"})", "w", "s", 1, 0, {}}};
  record.winner = record.timed[0].config;
  ASSERT_TRUE((*engine)->tuning().add(record).ok());
  const auto choice = choose_kernel(**engine, *instance.spec, Direction::kForward, *known_device("sm_90a"), 128);
  ASSERT_TRUE(choice.ok()) << choice.status().message();
  EXPECT_EQ(choice->config, second_best());
  EXPECT_EQ(choice->source, ChoiceSource::kFrozen);
  EXPECT_THAT(choice->why, HasSubstr("frozen in " + file_));
  EXPECT_THAT(log_, Contains(HasSubstr((*engine)->frozen()->checksum())));
}

TEST_F(FrozenTest, TwoChoicesOfOneKeyAreRefused) {
  Json file = Json::parse(*format_choices({{key_of(128), second_best()}, {key_of(256), second_best()}}));
  file.erase("checksum");
  Json same = file, other = file;
  same["choices"].push_back(same["choices"][0]);
  EXPECT_TRUE(FrozenChoices::parse(*format_checked_json(same, kMaxChoicesBytes), "f").ok());
  other["choices"].push_back(other["choices"][0]);
  other["choices"].back()["config"]["block_n"] = 16;
  const Status status = FrozenChoices::parse(*format_checked_json(other, kMaxChoicesBytes), "f").status();
  EXPECT_EQ(status.code(), Code::kInvalidConfig);
  EXPECT_THAT(status.message(), HasSubstr("occurs twice, with the configs "));
}

// Its checksum is right: somebody has written it with care.
TEST_F(FrozenTest, FieldsOfAnotherTypeAndKeysOfOtherFieldsAreRefused) {
  Json file = Json::parse(*format_choices({{key_of(128), second_best()}}));
  file.erase("checksum");
  const auto refusal = [&file](const char* name, const Json& value) {
    Json changed = file;
    changed["choices"][0][name] = value;
    const Status status = FrozenChoices::parse(*format_checked_json(changed, kMaxChoicesBytes), "f").status();
    EXPECT_EQ(status.code(), Code::kInvalidConfig) << name << " " << value.dump();
    return status.message();
  };
  for (const char* name : {"key", "op", "direction", "device", "arch", "generator"})
    EXPECT_EQ(refusal(name, 3), "f: one of its choices: " + std::string(name) +
                                    " is 3; it must be a string; it must be a file of hstujit freeze");
  for (const char* name : {"sm_count", "bucket"}) EXPECT_THAT(refusal(name, "3"), HasSubstr("it must be an integer"));
  for (const char* name : {"deterministic", "small_batch", "short_sequences"})
    for (const Json& value : {Json(1), Json(nullptr), Json("true")})
      EXPECT_THAT(refusal(name, value), HasSubstr("it must be true or false"));
  for (const Json& spec : {Json(3), Json("{}"), Json::object()})
    EXPECT_THAT(refusal("spec", spec), HasSubstr("it must be an object with fields"));
  const std::string digest = tuning_digest(key_of(128));
  for (const auto& [name, value] : std::map<const char*, Json>{{"bucket", 256},
                                                               {"device", "another"},
                                                               {"small_batch", true},
                                                               {"deterministic", true},
                                                               {"spec", {{"op", "hstu_attention"}}}})
    EXPECT_THAT(refusal(name, value), HasSubstr("the key \"" + digest + "\" does not match the fields next to it"));
  EXPECT_THAT(refusal("key", std::string(64, '0')), HasSubstr("does not match the fields next to it"));
}

TEST_F(FrozenTest, WhatIsFrozenIsWhatWouldHaveBeenChosen) {
  const Json file = frozen(config_of("128, 256"));
  ASSERT_EQ(file["choices"].size(), 4u) << "of short sequences and of others";
  write(file.dump(2));
  const auto engine = engine_with_file();
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  values_.erase("HSTUJIT_FROZEN");
  for (const int64_t bucket : {128, 256}) {
    const Instance instance = config_of().instances[0];
    const auto free =
        choose_kernel(*make_engine(), *instance.spec, Direction::kForward, *known_device("sm_90a"), bucket);
    const auto frozen = choose_kernel(**engine, *instance.spec, Direction::kForward, *known_device("sm_90a"), bucket);
    ASSERT_TRUE(free.ok() && frozen.ok());
    EXPECT_EQ(free->config, frozen->config);
  }
}

TEST_F(FrozenTest, TheSameChoicesAreTheSameFile) {
  const auto one = format_choices({{key_of(128), second_best()}, {key_of(256), second_best()}});
  const auto other =
      format_choices({{key_of(256), second_best()}, {key_of(128), second_best()}, {key_of(128), second_best()}});
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(*one, *other);
  KernelConfig different = second_best();
  ++different.attention().stages;
  EXPECT_THAT(format_choices({{key_of(128), second_best()}, {key_of(128), different}}).status().message(),
              HasSubstr("occurs twice"));
}

TEST_F(FrozenTest, AMissingKeyIsAnErrorAndNothingIsTimed) {
  write(*format_choices({{key_of(256), second_best()}}));
  values_["HSTUJIT_ON_MISS"] = "tune";
  const auto engine = engine_with_file();
  ASSERT_TRUE(engine.ok());
  const auto op = make_op(*engine);
  const Status status = op->prepare(128, 0);
  EXPECT_EQ(status.code(), Code::kCacheMiss);
  EXPECT_THAT(status.message(), HasSubstr("has no choice for hstu_attention forward, bucket 128"));
  EXPECT_EQ(fake().launches, 0);
}

// As explain says it of a cache's nearest entry.
TEST_F(FrozenTest, AMissNamesTheNearestChoiceAndWhatDiffers) {
  TuningKey of_other_device = key_of(128), of_other_mask = key_of(128), of_other_operator = key_of(128);
  of_other_device.device = "NVIDIA H100";
  of_other_device.sm_count = 114;
  Json spec = Json::parse(of_other_mask.spec);
  spec["max_attn_len"] = 128;
  of_other_mask.spec = spec.dump();
  of_other_operator.op = "delta_hstu_attention";
  const auto missed = [&](const std::vector<TuningKey>& keys, const Restriction& restriction) {
    std::vector<FrozenChoice> choices;
    for (const TuningKey& key : keys) choices.push_back({key, second_best()});
    write(*format_choices(choices));
    const auto choice = choose_kernel(**engine_with_file(), *config_of().instances[0].spec, Direction::kForward,
                                      *known_device("sm_90a"), 128, restriction);
    EXPECT_EQ(choice.status().code(), Code::kCacheMiss);
    return choice.status().message();
  };
  EXPECT_THAT(missed({of_other_device}, {}),
              HasSubstr("multiprocessors): its nearest choice differs in device (NVIDIA H100, not " +
                        key_of(128).device + ") and sm_count (114, not 132); make it anew with hstujit freeze"));
  EXPECT_THAT(missed({of_other_device, of_other_mask}, {}),
              HasSubstr("its nearest choice differs in spec.max_attn_len (128, not 0); "));
  EXPECT_THAT(missed({of_other_mask}, {.deterministic = true}),
              HasSubstr("its nearest choice differs in spec.max_attn_len (128, not 0); "))
      << "one without the restriction would serve, too";
  TuningKey of_other_arch = key_of(128);
  of_other_arch.arch = "sm_80";
  EXPECT_THAT(missed({of_other_arch}, {}), HasSubstr("its nearest choice differs in arch (sm_80, not sm_90a); "));
  EXPECT_THAT(missed({of_other_operator}, {}), HasSubstr("multiprocessors): it has none of hstu_attention at all; "));
}

// Ten thousand keys that a file of as many lacks took a quarter of an hour.
TEST_F(FrozenTest, TheKeysOfAFileAreReadForTheFirstMissAlone) {
  const KernelConfig second = second_best();
  std::vector<FrozenChoice> list;
  for (int64_t bucket = 1; bucket <= 500; ++bucket) list.push_back({key_of(bucket), second});
  const auto choices = FrozenChoices::parse(*format_choices(list), "f");
  ASSERT_TRUE(choices.ok()) << choices.status().message();
  const auto time_of = [&](int misses) {
    const auto start = std::chrono::steady_clock::now();
    for (int64_t bucket = 3000; bucket < 3000 + misses; ++bucket) {
      const auto nearest = choices->nearest({key_of(bucket)});
      EXPECT_TRUE(nearest && nearest->differences.size() == 1);
    }
    return std::chrono::steady_clock::now() - start;
  };
  const auto first = time_of(1), others = time_of(50);
  EXPECT_LT(others, 10 * first);
}

TEST_F(FrozenTest, AFileThatIsNoneIsRefused) {
  EXPECT_EQ(engine_with_file().status().code(), Code::kNotFound);
  const std::string good = *format_choices({{key_of(128), second_best()}});
  std::string damaged = good;
  damaged[damaged.find("\"bucket\": 128") + 10] = '2';
  const std::map<std::string, std::string> wrong = {{"", "one complete JSON object"},
                                                    {"{}", "format"},
                                                    {good.substr(0, good.size() / 2), "one complete JSON object"},
                                                    {damaged, "checksum"}};
  for (const auto& [text, sentence] : wrong) {
    write(text);
    const Status status = engine_with_file().status();
    EXPECT_EQ(status.code(), Code::kInvalidConfig) << text;
    EXPECT_THAT(status.message(), HasSubstr(sentence));
    EXPECT_THAT(status.message(), HasSubstr(file_));
  }
  write(good);
  EXPECT_TRUE(engine_with_file().ok());
  values_["HSTUJIT_OVERRIDE"] = R"({"stages": 3})";
  EXPECT_THAT(engine_with_file().status().message(), HasSubstr("unset one"));
}

TEST_F(FrozenTest, AFileThatThereIsNoMemoryForIsNoWrongOne) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer needs all of the address space";
  std::string lists = "[[]";
  while (lists.size() < size_t{4} << 20) lists += ",[]";
  const std::string text = R"({"format": "hstujit-choices-1", "choices": )" + lists + "]}";
  EXPECT_TRUE(with_little_memory([&] {
    const Status status = FrozenChoices::parse(text, "choices.json").status();
    return status.code() == Code::kOutOfMemory && status.message().starts_with("choices.json: there is no memory for");
  }));
}

TEST_F(FrozenTest, NothingIsTuned) {
  write(frozen(config_of()).dump());
  const auto engine = engine_with_file();
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  const OperationResult result = tune(**engine, config_of(), {});
  EXPECT_EQ(result.status.code(), Code::kInvalidArgument);
  EXPECT_THAT(result.status.message(), HasSubstr("under which nothing is timed; unset it to tune"));
}

}  // namespace
}  // namespace hstujit::test
