// Parts that a serving machine gets: a bundle and no compiler, no shipped records and no cache of its own. And how
// prewarm says beforehand whether that is enough.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "autotune_cache/store/bundle_transfer.h"
#include "operations/configs/operation.h"
#include "tests/paths.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ServingTest : public RuntimeTest {
 protected:
  std::string at(const std::string& name) const { return (folder_->path() / name).string(); }

  static Config example(const std::string& device) {
    auto config = load_config(source_path("/examples/configs/dlrm_hstu.json"));
    EXPECT_TRUE(config.ok()) << config.status().message();
    config->device = *known_device(device);
    return *config;
  }
  static Config small() {
    auto config = parse_config(R"({"version": 1, "device": "H200", "ops": [{"name": "test", "op": "hstu_attention",
        "dtype": "fp32", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": [128, 256],
        "lengths": [5, 0, 90]}]})",
                               "test", "");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }
  // Lists for every row that has a kernel what was chosen, and the digest of its cubin.
  static std::vector<std::string> choices_of(const Json& report) {
    std::vector<std::string> choices;
    for (const Json& row : report["instances"]) {
      choices.push_back(row["name"].dump() + row["bucket"].dump() + row["from"].dump() + row["config"].dump() +
                        row["key"].dump());
    }
    return choices;
  }
  static std::set<std::string> sources_of(const Json& report) {
    std::set<std::string> sources;
    for (const Json& row : report["instances"]) sources.insert(row["from"].get<std::string>());
    return sources;
  }
  Json prewarmed(const EnginePtr& engine, const Config& config) {
    const OperationResult result = prewarm(*engine, config, {});
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    return result.report;
  }
  std::string bundle_of(const EnginePtr& engine) {
    const auto exported = export_bundle(engine->kernels().store().layers(), {}, engine->tuning().layers());
    EXPECT_TRUE(exported.ok()) << exported.status().message();
    EXPECT_TRUE(write_file_atomically(at("bundle"), exported->packed.bytes).ok());
    return at("bundle");
  }
  // A machine with the library and that file alone.
  EnginePtr serving(const std::string& bundle) {
    compiler_ = nullptr;
    records_ = "";
    values_ = {{"HSTUJIT_CUDA_DRIVER", binary_path("/test_libraries/libhstujit_fake_cuda.so")},
               {"HSTUJIT_COMPILER_LIBRARY", "/nowhere/compiler.so"},
               {"HSTUJIT_CACHE_DIR", at("serving")},
               {"HSTUJIT_CACHE_PATH", bundle},
               {"HSTUJIT_ON_MISS", "fail"}};
    return make_engine();
  }
};

TEST_F(ServingTest, ABundleHasWhatChoseItsKernels) {
  records_ = binary_path("/records");
  for (const auto& [device, source] : {std::pair("H200", "tuning"), std::pair("H20", "near device")}) {
    SCOPED_TRACE(device);
    records_ = binary_path("/records");
    compiler_ = std::make_shared<FakeCompiler>();
    values_ = {{"HSTUJIT_CUDA_DRIVER", binary_path("/test_libraries/libhstujit_fake_cuda.so")},
               {"HSTUJIT_CACHE_DIR", at(device)}};
    const Config config = example(device);
    const EnginePtr engine = make_engine();
    const Json here = prewarmed(engine, config);
    ASSERT_EQ(here["instances"].size(), 18u) << "of short sequences and of others";
    EXPECT_THAT(sources_of(here), Contains(source));

    const Json there = prewarmed(serving(bundle_of(engine)), config);
    EXPECT_EQ(choices_of(there), choices_of(here));
    EXPECT_EQ(there["hits"], here["kernels"]);
    EXPECT_FALSE(std::filesystem::exists(at("serving"))) << "nothing is written";
  }
}

TEST_F(ServingTest, ABundleDecidesOverOtherShippedRecordsAndCostModels) {
  const Config config = small();
  const OpSpec& spec = *config.instances[0].spec;
  const auto estimates = search_space(spec, Direction::kForward, *config.device, heuristic_size(128)).candidates;
  const auto record_of = [&](int64_t bucket, size_t estimate) {
    TuningRecord record;
    record.key = tuning_key(spec, Direction::kForward, *config.device, bucket);
    record.workload = "batch";
    record.timed = {{key_text(estimates.at(estimate).config), "batch", "source", 10, 0.1}};
    return record;
  };
  // The origin has a kernel of the third estimate, as a library with another cost model would, and one of the first.
  const auto text = format_choices({{record_of(128, 0).key, estimates.at(2).config}});
  ASSERT_TRUE(text.ok());
  ASSERT_TRUE(write_file_atomically(at("choices.json"), *text).ok());
  Config of_128 = config;
  of_128.instances[0].max_seq_lens = {128};
  values_["HSTUJIT_FROZEN"] = at("choices.json");
  EXPECT_THAT(sources_of(prewarmed(make_engine(), of_128)), ::testing::ElementsAre("frozen"));
  values_.erase("HSTUJIT_FROZEN");
  Config of_256 = config;
  of_256.instances[0].max_seq_lens = {256};
  const EnginePtr engine = make_engine();
  EXPECT_THAT(sources_of(prewarmed(engine, of_256)), ::testing::ElementsAre("heuristic"));
  const std::string bundle = bundle_of(engine);

  TuningDatabase shipped(CacheDirectories{.user = at("shipped"), .read_only = {}}, Log());
  ASSERT_TRUE(shipped.add(record_of(128, 1)).ok());
  ASSERT_TRUE(shipped.add(record_of(256, 1)).ok());
  serving(bundle);
  records_ = at("shipped");
  const Json there = prewarmed(make_engine(), config);
  EXPECT_EQ(there["hits"], 2);
  EXPECT_EQ(there["instances"][0]["from"], "frozen");
  EXPECT_EQ(there["instances"][0]["config"], to_json(estimates.at(2).config));
  EXPECT_EQ(there["instances"][1]["from"], "heuristic");
  EXPECT_THAT(there["instances"][1]["why"].get<std::string>(), HasSubstr("exported in a bundle"));

  values_["HSTUJIT_CACHE_PATH"] = "";
  EXPECT_EQ(prewarm(*make_engine(), config, {}).status.code(), Code::kCacheMiss) << "it is the bundle that says so";
}

TEST_F(ServingTest, WhatWasFrozenOverTheOriginsRecordIsInTheBundle) {
  Config config = small();
  config.instances[0].max_seq_lens = {128};
  const OpSpec& spec = *config.instances[0].spec;
  const auto estimates = search_space(spec, Direction::kForward, *config.device, heuristic_size(128)).candidates;
  TuningRecord record;
  record.key = tuning_key(spec, Direction::kForward, *config.device, 128);
  record.workload = "batch";
  record.timed = {{key_text(estimates.at(1).config), "batch", "source", 10, 0.1}};
  ASSERT_TRUE(make_engine()->tuning().add(record).ok());
  ASSERT_TRUE(write_file_atomically(at("choices.json"), *format_choices({{record.key, estimates.at(2).config}})).ok());
  values_["HSTUJIT_FROZEN"] = at("choices.json");
  const EnginePtr engine = make_engine();
  prewarmed(engine, config);
  const Json there = prewarmed(serving(bundle_of(engine)), config);
  EXPECT_EQ(there["instances"][0]["config"], to_json(estimates.at(2).config));
}

TEST_F(ServingTest, ACacheDirectoryServesWithoutTheShippedRecordsToo) {
  records_ = binary_path("/records");
  const Config config = example("H200");
  const Json here = prewarmed(make_engine(), config);
  EXPECT_THAT(sources_of(here), Contains("tuning"));
  const Json there = prewarmed(serving(cache_dir()), config);
  EXPECT_EQ(choices_of(there), choices_of(here));
  for (const Json& row : there["instances"]) EXPECT_EQ(row["tuned"], false) << "no record says so";
}

TEST_F(ServingTest, AnOpOfTheServingMachineIsPreparedFromTheBundle) {
  const EnginePtr engine = make_engine();
  ASSERT_TRUE(make_op(engine)->prepare(256, 0).ok());
  const EnginePtr there = serving(bundle_of(engine));
  EXPECT_TRUE(make_op(there)->prepare(256, 0).ok());
  EXPECT_EQ(make_op(there, Backend::kCuda, R"(, "score": "relu")")->prepare(256, 0).code(), Code::kCacheMiss);
}

TEST_F(ServingTest, AMissNamesTheKernelAndItsKeyAndTheLayersThatAreNotUsed) {
  prewarmed(make_engine(), small());
  const std::string whole = bundle_of(make_engine());
  ASSERT_TRUE(write_file_atomically(at("damaged"), "no bundle").ok());
  std::filesystem::create_directory(at("open"));
  std::filesystem::permissions(at("open"), std::filesystem::perms::all);
  const auto miss = [&](const std::string& layer) {
    const Status missed = make_op(serving(layer), Backend::kCuda, R"(, "score": "relu")")->prepare(256, 0);
    EXPECT_EQ(missed.code(), Code::kCacheMiss);
    EXPECT_THAT(missed.message(),
                AllOf(StartsWith("the kernel hstu_attention_forward_"),
                      ContainsRegex(", key [0-9a-f]{12}, for sm_90a? is in no cache directory, and the policy")));
    return missed.message();
  };
  EXPECT_THAT(miss(whole), Not(HasSubstr("nothing of")));
  EXPECT_THAT(miss(at("absent")), HasSubstr("; nothing of \"" + at("absent") + "\" is used: it does not exist"));
  for (const char* layer : {"damaged", "open"})
    EXPECT_THAT(miss(at(layer)), HasSubstr("; nothing of \"" + at(layer) + "\" is used: ")) << layer;
  const std::string both = miss(at("absent") + ":" + at("damaged"));
  EXPECT_THAT(both, AllOf(HasSubstr("absent\" is used"), HasSubstr("damaged\" is used")));
}

TEST_F(ServingTest, AMissSaysHowTheNearestEntryDiffers) {
  const EnginePtr engine = make_engine();
  const auto op = make_op(engine);
  ASSERT_TRUE(op->prepare(256, 0).ok());
  ArtifactStore older(CacheDirectories{.user = at("older"), .read_only = {}}, Log());
  for (StoredArtifact& entry : engine->kernels().store().list()) {
    ArtifactKey key = entry.metadata.key;
    key.generator = "another";
    ASSERT_TRUE(older.put(key, cubin_of("x"), entry.metadata.info));
  }
  const Status missed = make_op(serving(at("older")))->prepare(256, 0);
  EXPECT_EQ(missed.code(), Code::kCacheMiss);
  EXPECT_THAT(missed.message(), HasSubstr(" in \"" + at("older") + "\", differs in generator (another, not "));
  values_["HSTUJIT_ON_MISS"] = "fail";
  values_["HSTUJIT_CACHE_PATH"] = at("older");
  values_["HSTUJIT_CACHE_DIR"] = at("empty");
  OperationOptions check;
  for (const bool checks : {false, true}) {
    check.check = checks;
    const OperationResult result = prewarm(*make_engine(), small(), check);
    EXPECT_THAT(result.status.message(), HasSubstr("; the nearest entry, ")) << checks;
  }
}

// The sentences said that such a kernel is in no cache directory.
TEST_F(ServingTest, AMissNamesTheEntryThatIsThereAndWhyItIsNotUsed) {
  namespace fs = std::filesystem;
  const auto open_to_all = [](const fs::path& path) {
    fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  };
  prewarmed(make_engine(), small());
  const StoredArtifact entry = make_engine()->kernels().store().list().front();
  const ArtifactFiles files(cache_dir(), entry.metadata.key.arch, entry.digest);
  const fs::path whole = at("whole");
  fs::copy(cache_dir(), whole, fs::copy_options::recursive);
  const struct {
    std::function<void()> spoil;
    std::string problem;
  } kCases[] = {
      {[&] { ASSERT_TRUE(write_file_atomically(files.cubin, cubin_of("another")).ok()); }, "the cubin"},
      {[&] { fs::resize_file(files.metadata, 10); }, "metadata: "},
      {[&] { fs::remove(files.cubin); }, "cannot open"},
      {[&] { open_to_all(files.cubin); }, "anybody may write it"},
      {[&] { open_to_all(files.folder()); }, "anybody may write it"},
      {[&] { open_to_all(files.folder().parent_path()); }, "anybody may write it"},
  };
  const std::string key = ", key " + entry.digest.substr(0, 12) + ", for sm_90a is in the cache and cannot be used";
  OperationOptions check;
  for (const auto& spoiled : kCases) {
    fs::remove_all(cache_dir());
    fs::copy(whole, cache_dir(), fs::copy_options::recursive);
    spoiled.spoil();
    for (const bool checks : {true, false}) {
      SCOPED_TRACE(fmt::format("{}, check {}", spoiled.problem, checks));
      check.check = checks;
      values_["HSTUJIT_ON_MISS"] = checks ? "heuristic" : "fail";
      std::string message;
      const OperationResult result = prewarm(*make_engine(), small(), check);
      for (const Json& row : result.report["instances"])
        if (row["key"] == entry.digest) message = row["error"]["message"].get<std::string>();
      EXPECT_THAT(message, AllOf(HasSubstr(key), HasSubstr("; the entry in \"" + cache_dir() + "\" is not used: "),
                                 HasSubstr(spoiled.problem), Not(HasSubstr("the nearest entry"))));
      EXPECT_EQ(message.find("the policy on a miss is \"fail\"; let the entry be used, ") != std::string::npos,
                !checks);
      EXPECT_THAT(message, Not(HasSubstr("bring its cache here")));
    }
  }
}

TEST_F(ServingTest, KernelsOfTwoTypesAreNotOneSentence) {
  auto config = parse_config(R"({"version": 1, "device": "H200", "ops": [
      {"name": "a", "op": "layer_norm", "width": 64, "dtype": "bf16", "rows": 1000},
      {"name": "b", "op": "layer_norm", "width": 64, "dtype": "fp16", "rows": 1000},
      {"name": "c", "op": "layer_norm", "width": 64, "dtype": "fp16", "rows": 1000}]})",
                             "test", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  OperationOptions check;
  check.check = true;
  for (const char* policy : {"heuristic", "fail"}) {
    values_["HSTUJIT_ON_MISS"] = policy;
    check.check = policy == std::string_view("heuristic");
    const Json rows = prewarm(*make_engine(), *config, check).report["instances"];
    std::vector<std::string> messages;
    for (const Json& row : rows) {
      messages.push_back(row["error"]["message"].get<std::string>());
      EXPECT_THAT(messages.back(), HasSubstr("run hstujit prewarm"));
      EXPECT_THAT(messages.back(), HasSubstr(", key " + row["key"].get<std::string>().substr(0, 12) + ","));
    }
    ASSERT_EQ(messages.size(), 3u);
    EXPECT_THAT(messages[0], StartsWith("the kernel layer_norm_forward_bf16_"));
    EXPECT_THAT(messages[1], StartsWith("the kernel layer_norm_forward_fp16_"));
    EXPECT_EQ(messages[1], messages[2]);
  }
}

TEST_F(ServingTest, PrewarmCompilesNothingUnderFailAndNamesWhatIsMissing) {
  values_["HSTUJIT_ON_MISS"] = "fail";
  const OperationResult result = prewarm(*make_engine(), small(), {});
  EXPECT_EQ(result.status.code(), Code::kCacheMiss);
  EXPECT_THAT(result.status.message(), HasSubstr("test forward 128"));
  EXPECT_EQ(compiler_->compiles, 0);
  EXPECT_GE(result.report["missing"], 1);
  EXPECT_EQ(result.report["compiled"], 0);
  EXPECT_EQ(result.report["failed"], 0);
  for (const Json& row : result.report["instances"]) {
    EXPECT_EQ(row["outcome"], "missing");
    EXPECT_THAT(row["error"]["message"].get<std::string>(), HasSubstr("is in no cache directory"));
  }
  values_.erase("HSTUJIT_ON_MISS");
  prewarmed(make_engine(), small());
  values_["HSTUJIT_ON_MISS"] = "fail";
  EXPECT_EQ(prewarmed(make_engine(), small())["missing"], 0);
}

TEST_F(ServingTest, ACheckSaysWhatIsThereAndTouchesNothing) {
  OperationOptions check;
  check.check = true;
  const OperationResult none = prewarm(*make_engine(), small(), check);
  EXPECT_EQ(none.status.code(), Code::kCacheMiss);
  EXPECT_EQ(none.report["checked"], true);
  EXPECT_EQ(none.report["hits"], 0);
  EXPECT_EQ(none.report["missing"], none.report["kernels"]);
  EXPECT_EQ(compiler_->compiles, 0);
  EXPECT_FALSE(std::filesystem::exists(cache_dir()));

  Config one = small();
  one.instances[0].max_seq_lens = {128};
  prewarmed(make_engine(), one);
  const int compiles = compiler_->compiles;
  EXPECT_TRUE(prewarm(*make_engine(), one, check).status.ok());
  const OperationResult some = prewarm(*make_engine(), example("H200"), check);
  EXPECT_EQ(some.status.code(), Code::kCacheMiss);
  EXPECT_EQ(compiler_->compiles, compiles);
}

TEST_F(ServingTest, WhatATunedKeyWasChosenForBeforeIsForgotten) {
  const Config config = small();
  prewarmed(make_engine(), config);
  const OpSpec& spec = *config.instances[0].spec;
  const TuningKey key = tuning_key(spec, Direction::kForward, *known_device("H200"), 128);
  const EnginePtr engine = make_engine();
  TuningRecord record;
  record.key = key;
  record.workload = "batch";
  record.timed = {
      {key_text(
           search_space(spec, Direction::kForward, *known_device("H200"), heuristic_size(128)).candidates.at(1).config),
       "batch", "source", 10, 0.1}};
  ASSERT_TRUE(engine->tuning().add(record).ok());
  const auto exported = export_bundle(engine->kernels().store().layers(), {}, engine->tuning().layers());
  ASSERT_TRUE(exported.ok());
  EXPECT_EQ(exported->choices, 1) << "that of the other key";
  EXPECT_EQ(exported->records, 1);
}

}  // namespace
}  // namespace hstujit::test
