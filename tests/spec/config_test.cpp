#include "compiler/spec/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>

#include "compiler/spec/batch.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/support/files.h"
#include "compiler/support/text.h"
#include "tests/paths.h"
#include "tests/spec/config_text.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Config, TheExamplesOfTheRepositoryLoad) {
  for (const char* name : {"ml100k.json", "dlrm_hstu.json", "own_mask.json", "own_score.json", "sequences.json"}) {
    const auto config = load_config(std::filesystem::path(source_path("/examples/configs")) / name);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_GE(config->instances.size(), 3u);
  }
  const auto config = load_config(std::filesystem::path(source_path("/examples/configs/ml100k.json")));
  EXPECT_EQ(make_lengths(config->instances[0], 1024).rows.size(), 943u);
  EXPECT_EQ(config->instances[2].num_targets, 10);
}

TEST(Config, ReadsEveryPart) {
  const auto config = parse_config(R"({
    // a comment
    "version": 1, "device": "sm_90a",
    "tuning": {"length_mode": "fine", "budget_s": 2.5, "exhaustive": true, "deterministic": true},
    "defaults": {"dtype": "fp16", "heads": 3, "num_targets": 7},
    "ops": [{"name": "x", "op": "hstu_attention", "directions": ["forward"], "attn_dim": 32, "hidden_dim": 64,
             "heads": 5, "max_seq_len": [512, 256, 512], "alpha": 0.25, "lengths": [3, 300]}]})",
                                   "model.json", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->device->name, "NVIDIA H200");
  EXPECT_EQ(config->tuning, (Tuning{LengthMode::kFine, 2.5, true, true}));
  const auto found = config->find("x");
  ASSERT_TRUE(found.ok());
  const Instance& instance = **found;
  const auto& params = static_cast<const HstuAttentionSpec&>(*instance.spec).params();
  EXPECT_EQ(params.heads, 5);
  EXPECT_EQ(params.dtype, DataType::kFp16);
  EXPECT_TRUE(params.num_targets);
  EXPECT_EQ(instance.max_seq_lens, (std::vector<int64_t>{256, 512}));
  EXPECT_EQ(instance.alpha, 0.25);
  const Lengths lengths = make_lengths(instance, 256);
  EXPECT_EQ(lengths.rows, (std::vector<int64_t>{3, 256}));
  EXPECT_EQ(lengths.num_targets, (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(config->find("y").status().message(), "op \"y\" is not in the config; it has: x");
  EXPECT_EQ(config->find("y").status().code(), Code::kNotFound);
  EXPECT_EQ(config->find("x/addmm").status().message(),
            "op \"x/addmm\" is not in the config (a step of x is no op of its own); it has: x");
  const auto many = parse_config(R"([{"name": "rank-64", "op": "layer_norm", "width": 64, "rows": 1}])", "m", "");
  EXPECT_EQ(many->find("rnak-64").status().message(),
            "op \"rnak-64\" is not in the config, did you mean \"rank-64\"?; it has: rank-64");
}

TEST(Config, MalformedTextIsNamedByLineAndColumn) {
  EXPECT_THAT(config_error("{\n  \"version\": 1,\n  ]"), StartsWith("model.json:3:3: malformed JSON: "));
  EXPECT_THAT(config_error(""), StartsWith("model.json:1:1: malformed JSON: "));
  EXPECT_EQ(config_error(R"({"version": 1, "version": 1})"),
            "model.json:1:16: the name \"version\" occurs twice in one object; each may occur once");
}

TEST(Config, MistakesNamePathValueAndWhatIsAllowed) {
  EXPECT_EQ(
      config_error(one_config(R"("max_seq_len": 0)")),
      "model.json:1:111: ops[0].max_seq_len is 0; allowed: an integer from 1 to 268435456 (no sequence is longer)");
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 268435457)")),
              HasSubstr("max_seq_len is 268435457; allowed: an integer"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "lengths": [268435457])")),
              HasSubstr("lengths[0] is 268435457; allowed"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "num_targets": 268435457)")),
              HasSubstr("num_targets is 268435457; allowed"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": [64, "x"])")),
              StartsWith("model.json:1:116: ops[0].max_seq_len[1] is \"x\"; allowed: an integer"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": [])")),
              HasSubstr("ops[0].max_seq_len is []; allowed: a list of at least one max_seq_len"));
  EXPECT_THAT(config_error(one_config(R"("heads": 2)")),
              HasSubstr("ops[0].max_seq_len is missing; allowed: an integer from 1"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "head": 2)")),
              EndsWith("ops[0].head (value 2) is not a known field of hstu_attention, did you mean \"heads\"?"))
      << "what is allowed besides would bury the suggestion";
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "alpha": "x")")),
              HasSubstr("ops[0].alpha is \"x\"; allowed: a finite number"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "num_targets": 1.5)")),
              HasSubstr("ops[0].num_targets is 1.5; allowed: true, false, or"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "num_targets": -1)")),
              HasSubstr("ops[0].num_targets is -1; allowed: true, false, or how many of them generated inputs have, an "
                        "integer from 0"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "rows": 2)")),
              HasSubstr("ops[0].rows (value 2) is not a known field"));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "directions": ["sideways"])")),
              HasSubstr("ops[0].directions[0] is \"sideways\"; allowed: \"forward\" or \"backward\""));
  EXPECT_THAT(config_error(one_config(R"("max_seq_len": 8, "directions": [])")),
              HasSubstr("ops[0].directions is []; allowed"));
  EXPECT_THAT(config_error(R"({"version": 2, "ops": []})"), HasSubstr("version is 2; allowed: 1"));
  EXPECT_THAT(config_error(R"({"ops": []})"), HasSubstr("version is missing; allowed: 1"));
  EXPECT_THAT(config_error(R"({"version": 1})"), HasSubstr("ops is missing; allowed: a list"));
  EXPECT_THAT(config_error(R"({"version": 1, "ops": []})"), HasSubstr("ops is []; allowed: a list of at least one"));
  EXPECT_THAT(config_error(R"({"version": 1, "ops": [3]})"), HasSubstr("ops[0] is 3; allowed: a JSON object"));
  EXPECT_THAT(config_error(R"([])"), HasSubstr("the document is []; allowed: a list of at least one"));
  EXPECT_THAT(config_error("3"), HasSubstr("the document is 3; allowed: an object with version and ops, or a list"));
  EXPECT_THAT(config_error(R"({"version": 1, "op": []})"),
              HasSubstr("op (value []) is not a known field, did you mean \"ops\"?"));
  EXPECT_THAT(config_error(R"({"version": 1, "device": "sm_12", "ops": []})"),
              HasSubstr("device \"sm_12\" is not known, and there is no DeviceSpec file of that name; allowed: sm_80"));
  EXPECT_THAT(config_error(R"({"version": 1, "tuning": {"length_mode": "pow3"}, "ops": []})"),
              HasSubstr("tuning.length_mode is \"pow3\"; allowed: pow2, static, fine, exact"));
  EXPECT_THAT(config_error(R"({"version": 1, "tuning": {"budget_s": -1}, "ops": []})"),
              HasSubstr("tuning.budget_s is -1; allowed: a number from 0"));
  EXPECT_THAT(config_error(R"({"version": 1, "defaults": {"dtyp": "bf16"}, "ops": []})"),
              HasSubstr("defaults.dtyp (value \"bf16\") is not a known field, did you mean \"dtype\"?"));
  EXPECT_THAT(config_error(R"({"version": 1, "defaults": {"name": "a"}, "ops": []})"),
              HasSubstr("defaults.name (value \"a\") is not a known field"));
}

TEST(Config, SmallBatchesOfAnOperatorWithoutThemAreOneMistake) {
  for (const char* value : {"true", "false"}) {
    const std::string error =
        config_error(R"({"version": 1, "ops": [{"name": "a", "op": "layer_norm", "width": 8, "rows": 3,
                                          "small_batches": )" +
                     std::string(value) + "}]}");
    EXPECT_THAT(error, HasSubstr("ops[0].small_batches (value " + std::string(value) + ") is not a known field"));
    EXPECT_THAT(error, ::testing::Not(HasSubstr("forward only")));
  }
}

TEST(Config, TheSchemasAddressIsAText) {
  EXPECT_THAT(config_error(R"({"$schema": 3, "version": 1, "ops": []})"), HasSubstr("$schema is 3; allowed: a text"));
}

TEST(Config, SmallBatchesAreAskedForWhereThereAreKernelsForThem) {
  const auto one = [](const std::string& op, const std::string& value) {
    return R"({"version": 1, "ops": [{"name": "a", "op": ")" + op +
           R"(", "heads": 1, "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8, "small_batches": )" + value + "}]}";
  };
  EXPECT_TRUE(parse_config(one("hstu_attention", "true"), "model.json", "")->instances[0].small_batches);
  EXPECT_FALSE(parse_config(one("hstu_attention", "false"), "model.json", "")->instances[0].small_batches);
  EXPECT_EQ(config_error(one("hstu_attention", "1")),
            "model.json:1:141: ops[0].small_batches is 1; allowed: true or false");
  EXPECT_THAT(config_error(one("delta_hstu_attention", "true")),
              HasSubstr("ops[0].small_batches (value true) is not a known field"));
}

TEST(Config, NamesAreRequiredPlainAndUnique) {
  const std::string tail = R"("op": "hstu_attention", "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 64})";
  EXPECT_THAT(config_error(R"({"version": 1, "ops": [{)" + tail + "]}"),
              HasSubstr("ops[0].name is missing; allowed: letters"));
  EXPECT_THAT(config_error(R"({"version": 1, "ops": [{"name": "a/b", )" + tail + "]}"),
              HasSubstr("ops[0].name is \"a/b\"; allowed: letters"));
  const auto named = [&](size_t letters) {
    return parse_config(R"([{"name": ")" + std::string(letters, 'n') + R"(", )" + tail + "]", "m", "").status();
  };
  EXPECT_EQ(named(100).message(), "");
  EXPECT_THAT(named(101).message(), HasSubstr("; allowed: letters, digits, '_', '-' and '.', at most 100,"));
  for (const char* dots : {".", ".."}) {  // names become names of folders
    EXPECT_THAT(config_error(R"({"version": 1, "ops": [{"name": ")" + std::string(dots) + R"(", )" + tail + "]}"),
                HasSubstr("ops[0].name"));
  }
  EXPECT_THAT(config_error(R"({"version": 1, "ops": [{"name": "a", )" + tail + R"(, {"name": "a", )" + tail + "]}"),
              HasSubstr("ops[1].name is \"a\"; allowed: a name that ops[0] does not have already"));
}

TEST(Config, ADirectionWithoutKernelIsAMistake) {
  const Status status = config_status(
      R"({"version": 1, "ops": [{"name": "a", "op": "complete_cumsum", "rows": 8, "directions": ["forward", "backward"]}]})");
  EXPECT_EQ(status.code(), Code::kInvalidConfig);
  EXPECT_EQ(status.message(),
            "model.json:1:100: ops[0].directions[1] is \"backward\", but complete_cumsum has no backward kernel; "
            "allowed: \"forward\"");
}

TEST(Config, ABareListIsTheOps) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  std::ofstream(folder->path() / "lengths.txt") << "12\n7\n";
  std::ofstream(folder->path() / "grid.json") << R"([{"name": "a", "op": "hstu_attention", "attn_dim": 64,
      "hidden_dim": 64, "max_seq_len": 64, "lengths": {"file": "lengths.txt"}}]  // the end)";
  const auto config = load_config(folder->path() / "grid.json");
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_EQ(config->instances.size(), 1u);
  EXPECT_EQ(make_lengths(config->instances[0], 64).rows, (std::vector<int64_t>{12, 7}));
  EXPECT_EQ(config->tuning, Tuning());
}

TEST(Config, ADeviceFileThatIsNotThereIsNamedByItsPath) {
  const Status status = parse_config(R"({"version": 1, "device": "dev.json", "ops": [{"name": "a", "op": "layer_norm",
                                          "width": 8, "rows": 1}]})",
                                     "model.json", "/some/folder")
                            .status();
  EXPECT_THAT(status.message(), HasSubstr("device \"dev.json\" is not known"));
  EXPECT_THAT(status.message(), HasSubstr("; there is no \"/some/folder/dev.json\""));
}

// Sentences about a config whose device is a file with that text, but for where the config has it.
std::vector<std::string> said_of_device_file(const std::string& text) {
  const auto folder = TempDir::create();
  EXPECT_TRUE(folder.ok());
  std::ofstream(folder->path() / "dev.json") << text;
  std::string config = one_config(R"("max_seq_len": 64)");
  config.insert(1, R"("device": "dev.json", )");
  const Status status = parse_config(config, "m", folder->path()).status();
  EXPECT_EQ(status.code(), Code::kInvalidConfig) << text;
  std::vector<std::string> lines = split(status.message(), '\n');
  const std::string begin = "m:1:12: device: " + (folder->path() / "dev.json").string() + ":";
  for (std::string& line : lines) {
    EXPECT_THAT(line, testing::StartsWith(begin));
    line.erase(0, begin.size());
  }
  return lines;
}

TEST(Config, TheMistakesOfADeviceFileAreSaidWithTheirPlaces) {
  EXPECT_THAT(
      said_of_device_file(R"({
  "name": "a", "archs": "sm_90", "sm_count": 0,
  "arch": "sm_90a", "max_threads": "x"})"),
      testing::ElementsAre(testing::StartsWith("1:1: shared_memory is missing; allowed: an integer from 1 to"),
                           "2:16: a name is not a known field, did you mean \"arch\"?",
                           "2:46: sm_count has a wrong value; allowed: an integer from 1 to 65536 (multiprocessors)",
                           testing::StartsWith("3:36: max_threads has a wrong value; allowed: an integer from 1 to")));
  EXPECT_THAT(said_of_device_file(R"({"name": "a", "arch": "sm_90", "sm_count": 1, "shared_memory": 1})"),
              testing::ElementsAre("1:23: arch has a wrong value, did you mean \"sm_90a\"?; allowed: \"sm_90a\" of "
                                   "Hopper, whose instructions its kernels use"));
  EXPECT_THAT(
      said_of_device_file("{\n \"name\" 3}"),
      testing::ElementsAre("2:9: malformed JSON: it must be one complete JSON object, with nothing after it; it "
                           "must be a DeviceSpec file (docs/config.md)"));
  EXPECT_THAT(said_of_device_file("{\"name\": 1e999}"),
              testing::ElementsAre(testing::StartsWith("1:14: malformed JSON: a number is out of range;")));
  EXPECT_THAT(said_of_device_file(std::string(100, '[') + std::string(100, ']')),
              testing::ElementsAre(testing::StartsWith("1:65: lists and objects are nested more than 64 deep;")));
}

TEST(Config, NothingOfADeviceFileIsShown) {
  const std::string name = "\"TOKEN is not a known field TOKEN\"";
  for (const std::string& text :
       {std::string("TOKEN=1"), std::string(R"({"TOKEN": 1})"), std::string(R"(["TOKEN"])"), std::string("\"TOKEN\""),
        std::string(R"({"TOKEN": 1, "TOKEN": 2})"), "{" + name + ":" + name + "}", "{\"arch\":" + name + "}",
        "{\"" + std::string(3000, 'x') + "TOKEN\": 1}",
        std::string(R"({"name": "TOKEN", "arch": "TOKEN", "sm_count": "; allowed: TOKEN"})")}) {
    const std::vector<std::string> lines = said_of_device_file(text);
    EXPECT_FALSE(lines.empty());
    for (const std::string& line : lines) EXPECT_THAT(line, testing::Not(HasSubstr("TOKEN"))) << text;
  }
}

TEST(Config, ManyInstancesAreNamedInOneShortSentence) {
  Config config;
  config.instances.resize(20'000);
  for (size_t i = 0; i < config.instances.size(); ++i) config.instances[i].name = fmt::format("op{}", i);
  const Status status = config.find("none").status();
  EXPECT_THAT(status.message(), testing::EndsWith("op19 and 19980 more"));
}

// However large the file is, what it asks for is bounded before anything is made of it.
TEST(Config, AsksForABoundedNumberOfKernels) {
  const auto lengths = [](size_t count) {
    std::string list;
    for (size_t i = 1; i <= count; ++i) list += (i > 1 ? "," : "") + std::to_string(i);
    return "\"max_seq_len\": [" + list + "]";
  };
  EXPECT_TRUE(parse_config(one_config(lengths(10'000)), "m", "").ok());
  EXPECT_THAT(parse_config(one_config(lengths(10'001)), "m", "").status().message(),
              HasSubstr("max_seq_len has 10001 entries; allowed: at most 10000"));
  EXPECT_THAT(parse_config(one_config(lengths(6'000) + R"(, "directions": ["forward", "backward"])"), "m", "")
                  .status()
                  .message(),
              HasSubstr("ops has 12000 kernels; allowed: at most 10000 kernels, one for each step of each instance"));
  EXPECT_THAT(parse_config(one_config(lengths(6'000) + R"(, "small_batches": true)"), "m", "").status().message(),
              HasSubstr("ops has 12000 kernels; allowed: at most 10000 kernels"));
  std::string ops = "{\"version\": 1, \"ops\": [1";
  for (int i = 0; i < 10'000; ++i) ops += ",1";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(parse_config(ops + "]}", "m", "").status().message(), HasSubstr("ops has 10001 instances; allowed: "));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// Beyond the mistakes that are reported, no sentence is made for one.
TEST(Config, MillionsOfMistakesTakeSeconds) {
  if (kSanitized) GTEST_SKIP() << "a time of a sanitized build says nothing";
  std::string texts = "\"\"", names, directions = "\"forward\"";
  for (int i = 0; i < 2'000'000; ++i) texts += ",\"\"";
  for (int i = 0; i < 130'000; ++i) names += fmt::format(",\"n{}\":0", i);
  for (int i = 0; i < 100'000; ++i) directions += ",\"forward\"";
  const auto start = std::chrono::steady_clock::now();
  const auto mistakes_of = [](const std::string& fields) {
    return parse_config(one_config(fields), "m", "").status().message();
  };
  EXPECT_THAT(mistakes_of("\"max_seq_len\": 8, \"lengths\": [" + texts + "]"), HasSubstr("and 1999981 more"));
  EXPECT_THAT(mistakes_of("\"max_seq_len\": 8" + names), HasSubstr("and 129980 more"));
  EXPECT_THAT(mistakes_of("\"max_seq_len\": 8, \"directions\": [" + directions + "]"),
              HasSubstr("allowed: a list of \"forward\", \"backward\" or both"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Config, AlphaFitsIntoFp32) {
  EXPECT_TRUE(parse_config(one_config(R"("max_seq_len": 8, "alpha": -3e38)"), "m", "").ok());
  for (const char* alpha : {"3.5e38", "-1e41", "1e300"}) {
    EXPECT_THAT(
        parse_config(one_config(fmt::format(R"("max_seq_len": 8, "alpha": {})", alpha)), "m", "").status().message(),
        HasSubstr("allowed: a finite number of fp32"));
  }
}

TEST(Config, AnOperatorWithoutSequencesHasRowsAndNoAlpha) {
  const auto mistakes_of = [](const std::string& fields) {
    return parse_config(R"({"version": 1, "ops": [{"name": "n", "op": "rms_norm", "width": 8)" + fields + "}]}", "m",
                        "")
        .status()
        .message();
  };
  EXPECT_EQ(mistakes_of(R"(, "rows": 3)"), "");
  EXPECT_THAT(mistakes_of(""), HasSubstr("ops[0].rows is missing; allowed: an integer from 0 to 268435456 (rows of"));
  EXPECT_THAT(mistakes_of(R"(, "rows": 3, "alpha": 1)"),
              HasSubstr("ops[0].alpha (value 1) is not a known field of rms_norm; "));
  EXPECT_THAT(mistakes_of(R"(, "rows": 3, "lengths": [1])"),
              HasSubstr("ops[0].lengths (value [1]) is not a known field"));
}

TEST(Config, SmallBatchesAreForwardOnly) {
  EXPECT_THAT(
      parse_config(one_config(R"("max_seq_len": 8, "small_batches": true, "directions": ["backward"])"), "m", "")
          .status()
          .message(),
      HasSubstr("ops[0].small_batches is true, but hstu_attention has kernels for small batches forward only"));
  EXPECT_TRUE(
      parse_config(one_config(R"("max_seq_len": 8, "small_batches": true, "directions": ["backward", "forward"])"), "m",
                   "")
          .ok());
}

}  // namespace
}  // namespace hstujit
