// Explanations of a miss: which fields of the key differ from the nearest entry, or that the entry is damaged.
#include <fmt/format.h>

#include "autotune_cache/store/bundle_transfer.h"
#include "operations/configs/operation.h"
#include "runtime/engine/nearest_entry.h"
#include "tests/runtime/support.h"
#include "tests/support/little_memory.h"
#include "tests/support/sanitized.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

class ExplainTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    auto config = parse_config(R"({"version": 1, "device": "sm_90a", "ops": [{"name": "test", "op": "hstu_attention",
        "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 128}]})",
                               "test", "");
    ASSERT_TRUE(config.ok()) << config.status().message();
    config_ = std::move(*config);
    const Instance& instance = config_.instances[0];
    const auto choice = choose_kernel(*make_engine(), *instance.spec, Direction::kForward, *config_.device, 128);
    ASSERT_TRUE(choice.ok()) << choice.status().message();
    chosen_ = choice->config;
    key_ = artifact_key({instance.spec, Direction::kForward, chosen_, *config_.device, false});
    tuning_ = tuning_key(*instance.spec, Direction::kForward, *config_.device, 128);
  }

  std::string at(const std::string& name) const { return (folder_->path() / name).string(); }
  void put(const std::string& directory, const ArtifactKey& key) const {
    ArtifactStore store(CacheDirectories{.user = directory, .read_only = {}}, Log());
    ASSERT_TRUE(store.put(key, cubin_of("kept"), {.kernel = "k", .nvrtc = "13.0", .library = "0", .resources = "{}"}));
  }
  void add(const std::string& directory, const TuningKey& key) const {
    TuningRecord record;
    record.key = key;
    record.workload = "w";
    record.timed = {{key_text(chosen_), "w", "s", 10, 1}};
    ASSERT_TRUE(TuningDatabase(CacheDirectories{.user = directory, .read_only = {}}, Log()).add(record).ok());
  }
  ArtifactKey with_block_n(ArtifactKey key, int64_t block_n) const {
    KernelConfig config = chosen_;
    config.attention().block_n = block_n;
    key.config = key_text(config);
    return key;
  }
  Json explained() {
    const OperationResult result = explain(*make_engine(), config_, {});
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    return result.report["instances"][0];
  }
  static Json difference(const std::string& field, const Json& found, const Json& wanted) {
    return {{"field", field}, {"found", found}, {"wanted", wanted}};
  }

  Config config_;
  KernelConfig chosen_;
  ArtifactKey key_;
  TuningKey tuning_;
};

TEST_F(ExplainTest, AMissInAnEmptyCacheHasNoNearestEntry) {
  const Json row = explained();
  EXPECT_FALSE(row["cache"].contains("nearest")) << row["cache"].dump();
  EXPECT_EQ(row["tuning_miss"], Json::object());
}

TEST_F(ExplainTest, TheFieldsThatDifferFromTheNearestEntryAreNamedWithBothValues) {
  const int64_t other_n = chosen_.attention().block_n == 64 ? 128 : 64;
  ArtifactKey key = with_block_n(key_, other_n);
  key.generator = "another build";
  put(cache_dir(), key);
  ArtifactKey farther = key;
  farther.direction = "backward";
  farther.options.emplace_back("-lineinfo");
  put(cache_dir(), farther);
  const Json nearest = explained()["cache"]["nearest"];
  EXPECT_EQ(nearest["digest"], *artifact_digest(key));
  EXPECT_EQ(nearest["directory"], cache_dir());
  EXPECT_EQ(nearest["differs"], Json({difference("generator", "another build", key_.generator),
                                      difference("config.block_n", other_n, chosen_.attention().block_n)}));
  EXPECT_EQ(nearest["sentence"],
            fmt::format("differs in generator (another build, not {}) and config.block_n ({}, not {})",
                        key_.generator.substr(0, 12), other_n, chosen_.attention().block_n));
}

TEST_F(ExplainTest, FieldsOfTheSpecAndOptionsAreNamed) {
  ArtifactKey key = key_;
  Json spec = Json::parse(key.spec);
  spec["heads"] = 3;
  spec["of_another_library"] = true;
  key.spec = spec.dump();
  key.options = {"--a"};
  put(cache_dir(), key);
  EXPECT_EQ(explained()["cache"]["nearest"]["differs"],
            Json({difference("spec.heads", 3, 2), difference("options", {"--a"}, key_.options),
                  difference("spec.of_another_library", true, nullptr)}));
}

// The fields of a key had all names around them in their own.
TEST_F(ExplainTest, AKeyOfLongNamesTakesNoMoreMemoryThanItsText) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a sanitizer's own memory cannot be limited";
  Json inner = Json::object();
  for (int i = 0; i < 200; ++i) inner[fmt::format("{}", i)] = 1;
  Json spec = json_or_null(key_.spec);
  spec[std::string(size_t{1} << 20, 'x')] = inner;
  StoredArtifact entry;
  entry.metadata.key = key_;
  entry.metadata.key.spec = spec.dump();
  EXPECT_TRUE(with_little_memory([&] {
    const auto nearest = KnownKeys({entry}).nearest(key_);
    return nearest && nearest->differences.back().field == "spec" && nearest->sentence().size() < 10'000;
  }));
}

// Each field of one list was looked for in all of the other.
TEST_F(ExplainTest, KeysOfManyFieldsAreComparedInNoTime) {
  if (kThreadSanitized) GTEST_SKIP() << "one thread";
  StoredArtifact entry;
  entry.metadata.key = key_;
  std::string many, other;
  for (int i = 0; i < 60'000; ++i) many += fmt::format(",\"a{}\":1", i);
  for (int i = 60'000; i > 0; --i) other += fmt::format(",\"b{}\":1", i);
  entry.metadata.key.spec = R"({"op":"hstu_attention")" + many + "}";
  key_.spec = R"({"op":"hstu_attention")" + other + "}";
  entry.metadata.key.options = std::vector<std::string>(40'000, "-an-option");
  const auto start = std::chrono::steady_clock::now();
  const auto nearest = KnownKeys({entry}).nearest(key_);
  ASSERT_TRUE(nearest);
  EXPECT_LT(nearest->sentence().size(), 10'000u);
  // Each with each would take hours.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(kSanitized ? 60 : 10));
}

TEST_F(ExplainTest, OtherOperatorsAndArchitecturesAreNotNear) {
  ArtifactKey key = key_;
  key.arch = "sm_80";
  put(cache_dir(), key);
  key = key_;
  Json spec = Json::parse(key.spec);
  spec["op"] = "layer_norm";
  key.spec = spec.dump();
  put(cache_dir(), key);
  TuningKey tuning = tuning_;
  tuning.arch = "sm_80";
  add(cache_dir(), tuning);
  tuning = tuning_;
  tuning.op = "layer_norm";
  add(cache_dir(), tuning);
  const Json row = explained();
  EXPECT_FALSE(row["cache"].contains("nearest"));
  EXPECT_FALSE(row["tuning_miss"].contains("nearest"));
}

// Also of one that is a bundle.
TEST_F(ExplainTest, EveryLayerIsLookedAtAndTheSameKernelOfAnotherBuildIsNearest) {
  ArtifactKey key = key_;
  key.direction = "backward";
  put(cache_dir(), key);
  key = key_;
  key.generator = "another build";
  put(at("origin"), key);
  const CacheLayers layers = open_layers({.user = at("origin"), .read_only = {}}, Log());
  const auto bundle = export_bundle(layers, {}, layers);
  ASSERT_TRUE(bundle.ok());
  ASSERT_TRUE(write_file_atomically(at("bundle"), bundle->packed.bytes).ok());
  put(at("later"), key);
  values_["HSTUJIT_CACHE_PATH"] = at("bundle") + ":" + at("later");
  const Json nearest = explained()["cache"]["nearest"];
  EXPECT_EQ(nearest["directory"], at("bundle"));
  EXPECT_EQ(nearest["differs"], Json::array({difference("generator", "another build", key_.generator)}));
}

TEST_F(ExplainTest, TheNearestTuningRecordIsNamed) {
  TuningKey key = tuning_;
  key.device = "NVIDIA H100";
  key.sm_count = 114;
  add(cache_dir(), key);
  key = tuning_;
  key.bucket = 512;
  Json spec = Json::parse(key.spec);
  spec["heads"] = 3;
  spec["attn_dim"] = 128;
  key.spec = spec.dump();
  add(at("later"), key);
  values_["HSTUJIT_CACHE_PATH"] = at("later");
  const Json nearest = explained()["tuning_miss"]["nearest"];
  EXPECT_EQ(nearest["directory"], cache_dir());
  EXPECT_EQ(nearest["differs"],
            Json({difference("device", "NVIDIA H100", tuning_.device), difference("sm_count", 114, tuning_.sm_count)}));
  std::filesystem::remove_all(cache_dir());
  EXPECT_EQ(
      explained()["tuning_miss"]["nearest"]["differs"],
      Json({difference("bucket", 512, 128), difference("spec.heads", 3, 2), difference("spec.attn_dim", 128, 64)}));
}

TEST_F(ExplainTest, ARecordOfFailuresAloneIsNoHit) {
  TuningRecord record;
  record.key = tuning_;
  record.rejected = {{R"({"a": 1})", "s", "crashed", ""}};
  ASSERT_TRUE(TuningDatabase(CacheDirectories{.user = cache_dir(), .read_only = {}}, Log()).add(record).ok());
  const Json row = explained();
  EXPECT_EQ(row["tuning_record"], "no winner");
  EXPECT_EQ(row["from"], "heuristic");
  add(cache_dir(), tuning_);
  EXPECT_EQ(explained()["tuning_record"], "hit");
}

TEST_F(ExplainTest, ADamagedEntryIsNamedInsteadOfCalledAbsent) {
  put(cache_dir(), key_);
  const ArtifactFiles files(cache_dir(), key_.arch, *artifact_digest(key_));
  std::filesystem::resize_file(files.cubin, 3);
  add(cache_dir(), tuning_);
  std::filesystem::resize_file(record_file(cache_dir(), tuning_digest(tuning_)), 3);
  const Json row = explained();
  EXPECT_FALSE(row["cache"].contains("nearest"));
  ASSERT_EQ(row["cache"]["damaged"].size(), 1u);
  EXPECT_EQ(row["cache"]["damaged"][0]["directory"], cache_dir());
  EXPECT_THAT(row["cache"]["damaged"][0]["problem"].get<std::string>(), HasSubstr("the cubin has 3 bytes"));
  EXPECT_THAT(row["tuning_miss"]["damaged"][0]["problem"].get<std::string>(), HasSubstr("one complete JSON object"));
}

// Lists read no cubins, so that such an entry was named.
TEST_F(ExplainTest, ADamagedEntryIsNotNearest) {
  ArtifactKey nearest = key_, farther = key_;
  nearest.generator = "another build";
  farther.generator = "another build";
  farther.direction = "backward";
  for (const ArtifactKey& key : {nearest, farther}) put(cache_dir(), key);
  const ArtifactFiles files(cache_dir(), key_.arch, *artifact_digest(nearest));
  std::string cubin = *read_file(files.cubin, 1 << 20);
  cubin.back() ^= 1;
  ASSERT_TRUE(write_file_atomically(files.cubin, cubin).ok());
  EXPECT_EQ(explained()["cache"]["nearest"]["digest"], *artifact_digest(farther));
}

TEST_F(ExplainTest, AFolderThatIsPassedOverIsNamed) {
  put(cache_dir(), key_);
  const std::filesystem::path folder = ArtifactFiles(cache_dir(), key_.arch, *artifact_digest(key_)).folder();
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  const Json damaged = explained()["cache"]["damaged"];
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_THAT(damaged[0]["problem"].get<std::string>(), HasSubstr("anybody may write it"));
}

TEST_F(ExplainTest, AHitHasNoNearestEntry) {
  put(cache_dir(), key_);
  add(cache_dir(), tuning_);
  const Json row = explained();
  EXPECT_EQ(row["cache"]["hit"], true);
  EXPECT_FALSE(row["cache"].contains("nearest"));
  EXPECT_FALSE(row.contains("tuning_miss"));
}

}  // namespace
}  // namespace hstujit::test
