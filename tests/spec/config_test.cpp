#include "compiler/spec/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <fstream>
#include <numeric>

#include "compiler/spec/batch.h"
#include "compiler/spec/operators/hstu_attention/spec.h"
#include "compiler/spec/sequence_rows.h"
#include "compiler/spec/small_batch.h"
#include "compiler/support/files.h"
#include "tests/support/sanitized.h"
#include "tests/support/whole_file.h"

namespace hstujit {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSource = HSTUJIT_SOURCE_DIR;

// A config of one instance, with `fields` added to it.
std::string one(const std::string& fields) {
  return R"({"version": 1, "ops": [{"name": "a", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, )" + fields +
         "}]}";
}

Status status_of(const std::string& text) { return parse_config(text, "model.json", "").status(); }

std::string error_of(const std::string& text) {
  const Status status = status_of(text);
  EXPECT_FALSE(status.ok()) << text;
  EXPECT_EQ(status.code(), Code::kInvalidConfig) << status.message();
  return status.message();
}

TEST(Config, TheExamplesOfTheRepositoryLoad) {
  for (const char* name : {"ml100k.json", "dlrm_hstu.json", "sequences.json"}) {
    const auto config = load_config(std::filesystem::path(kSource) / "examples/configs" / name);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_GE(config->instances.size(), 3u);
  }
  const auto config = load_config(std::filesystem::path(kSource) / "examples/configs/ml100k.json");
  EXPECT_EQ(make_lengths(config->instances[0], 1024).rows.size(), 943u);
  EXPECT_EQ(config->instances[2].num_targets, 10);
}

TEST(Config, ReadsEveryPart) {
  const auto config = parse_config(R"({
    // a comment
    "version": 1, "device": "sm_90a", "tuning": {"length_mode": "fine", "budget_s": 2.5, "exhaustive": true, "deterministic": true},
    "defaults": {"dtype": "fp16", "heads": 3, "num_targets": 7},
    "ops": [{"name": "x", "op": "hstu_attention", "directions": ["forward"], "attn_dim": 32, "hidden_dim": 64, "heads": 5,
             "max_seq_len": [512, 256, 512], "alpha": 0.25, "lengths": [3, 300]}]})",
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
  const auto many = parse_config(R"([{"name": "rank-64", "op": "layer_norm", "width": 64, "rows": 1}])", "m", "");
  EXPECT_EQ(many->find("rnak-64").status().message(),
            "op \"rnak-64\" is not in the config, did you mean \"rank-64\"?; it has: rank-64");
}

TEST(Config, MalformedTextIsNamedByLineAndColumn) {
  EXPECT_THAT(error_of("{\n  \"version\": 1,\n  ]"), StartsWith("model.json:3:3: malformed JSON: "));
  EXPECT_THAT(error_of(""), StartsWith("model.json:1:1: malformed JSON: "));
  EXPECT_EQ(error_of(R"({"version": 1, "version": 1})"),
            "model.json:1:16: the name \"version\" stands twice in one object; each may stand once");
}

TEST(Config, MistakesNamePathValueAndWhatIsAllowed) {
  EXPECT_EQ(
      error_of(one(R"("max_seq_len": 0)")),
      "model.json:1:111: ops[0].max_seq_len is 0; allowed: an integer from 1 to 268435456 (no sequence is longer)");
  EXPECT_THAT(error_of(one(R"("max_seq_len": 268435457)")), HasSubstr("max_seq_len is 268435457; allowed: an integer"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "lengths": [268435457])")),
              HasSubstr("lengths[0] is 268435457; allowed"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "num_targets": 268435457)")),
              HasSubstr("num_targets is 268435457; allowed"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": [64, "x"])")),
              StartsWith("model.json:1:116: ops[0].max_seq_len[1] is \"x\"; allowed: an integer"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": [])")),
              HasSubstr("ops[0].max_seq_len is []; allowed: a list of at least one max_seq_len"));
  EXPECT_THAT(error_of(one(R"("heads": 2)")), HasSubstr("ops[0].max_seq_len is missing; allowed: an integer from 1"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "head": 2)")),
              EndsWith("ops[0].head (value 2) is not a known field, did you mean \"heads\"?"))
      << "what is allowed besides would bury the suggestion";
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "alpha": "x")")),
              HasSubstr("ops[0].alpha is \"x\"; allowed: a finite number"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "num_targets": 1.5)")),
              HasSubstr("ops[0].num_targets is 1.5; allowed: true, false, or"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "num_targets": -1)")),
              HasSubstr("ops[0].num_targets is -1; allowed: true, false, or how many of them generated inputs have, an "
                        "integer from 0"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "rows": 2)")), HasSubstr("ops[0].rows (value 2) is not a known field"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "directions": ["sideways"])")),
              HasSubstr("ops[0].directions[0] is \"sideways\"; allowed: \"forward\" or \"backward\""));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "directions": [])")), HasSubstr("ops[0].directions is []; allowed"));
  EXPECT_THAT(error_of(R"({"version": 2, "ops": []})"), HasSubstr("version is 2; allowed: 1"));
  EXPECT_THAT(error_of(R"({"ops": []})"), HasSubstr("version is missing; allowed: 1"));
  EXPECT_THAT(error_of(R"({"version": 1})"), HasSubstr("ops is missing; allowed: a list"));
  EXPECT_THAT(error_of(R"({"version": 1, "ops": []})"), HasSubstr("ops is []; allowed: a list of at least one"));
  EXPECT_THAT(error_of(R"({"version": 1, "ops": [3]})"), HasSubstr("ops[0] is 3; allowed: a JSON object"));
  EXPECT_THAT(error_of(R"([])"), HasSubstr("the document is []; allowed: a list of at least one"));
  EXPECT_THAT(error_of("3"), HasSubstr("the document is 3; allowed: an object with version and ops, or a list"));
  EXPECT_THAT(error_of(R"({"version": 1, "op": []})"),
              HasSubstr("op (value []) is not a known field, did you mean \"ops\"?"));
  EXPECT_THAT(error_of(R"({"version": 1, "device": "sm_12", "ops": []})"),
              HasSubstr("device \"sm_12\" is not known, and there is no DeviceSpec file of that name; allowed: sm_80"));
  EXPECT_THAT(error_of(R"({"version": 1, "tuning": {"length_mode": "pow3"}, "ops": []})"),
              HasSubstr("tuning.length_mode is \"pow3\"; allowed: pow2, static, fine, exact"));
  EXPECT_THAT(error_of(R"({"version": 1, "tuning": {"budget_s": -1}, "ops": []})"),
              HasSubstr("tuning.budget_s is -1; allowed: a number from 0"));
  EXPECT_THAT(error_of(R"({"version": 1, "defaults": {"dtyp": "bf16"}, "ops": []})"),
              HasSubstr("defaults.dtyp (value \"bf16\") is not a known field, did you mean \"dtype\"?"));
  EXPECT_THAT(error_of(R"({"version": 1, "defaults": {"name": "a"}, "ops": []})"),
              HasSubstr("defaults.name (value \"a\") is not a known field"));
}

// Whoever writes a default means something by it, also where no entry has any use for it yet.
TEST(Config, ADefaultThatNoEntryTakesIsHeldToItsRules) {
  const auto config_with = [](const std::string& defaults) {
    return R"({"version": 1, "defaults": {)" + defaults +
           R"(}, "ops": [{"name": "a", "op": "layer_norm", "width": 8, "rows": 3}]})";
  };
  const auto with = [&](const std::string& defaults) { return error_of(config_with(defaults)); };
  EXPECT_TRUE(parse_config(config_with(R"("silu": true, "heads": 4, "max_seq_len": [64, 128])"), "m", "").ok());
  EXPECT_THAT(with(R"("silu": 3)"), HasSubstr("defaults.silu is 3; allowed: true or false"));
  EXPECT_THAT(with(R"("heads": 0)"), HasSubstr("defaults.heads is 0; allowed: an integer from 1"));
  EXPECT_THAT(with(R"("max_seq_len": [64, 0])"), HasSubstr("defaults.max_seq_len[1] is 0"));
  EXPECT_THAT(with(R"("op": "layer_nrm")"), HasSubstr("defaults.op is \"layer_nrm\", did you mean \"layer_norm\"?"));
  EXPECT_THAT(with(R"("alignment": 3)"), HasSubstr("defaults.alignment is 3; allowed: 2, 4, 8, 16"));
}

// A default for operators that the config does not have is fine, unless it stands for a field that one of its own has.
TEST(Config, ADefaultOfNoEntryThatStandsForAnothersFieldIsAMistake) {
  const auto with = [](const std::string& defaults, const std::string& fields = "") {
    return R"({"version": 1, "defaults": {)" + defaults + R"(}, "ops": [{"name": "a", "op": "hstu_attention",
        "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8)" +
           fields + "}]}";
  };
  EXPECT_THAT(
      error_of(with(R"("num_heads": 4)")),
      HasSubstr("defaults.num_heads (value 4) is a field of no entry, did you mean \"heads\"? hstu_attention has "
                "that"));
  for (const std::string& good : {with(R"("num_heads": 4, "heads": 2)"), with(R"("num_heads": 4)", R"(, "heads": 2)"),
                                  with(R"("concat_x": true, "rows": 5)")})
    EXPECT_TRUE(parse_config(good, "test", "").ok()) << good;
}

TEST(Config, SmallBatchesOfAnOperatorWithoutThemAreOneMistake) {
  for (const char* value : {"true", "false"}) {
    const std::string error =
        error_of(R"({"version": 1, "ops": [{"name": "a", "op": "layer_norm", "width": 8, "rows": 3,
                                          "small_batches": )" +
                 std::string(value) + "}]}");
    EXPECT_THAT(error, HasSubstr("ops[0].small_batches (value " + std::string(value) + ") is not a known field"));
    EXPECT_THAT(error, ::testing::Not(HasSubstr("forward only")));
  }
}

TEST(Config, TheSchemasAddressIsAText) {
  EXPECT_THAT(error_of(R"({"$schema": 3, "version": 1, "ops": []})"), HasSubstr("$schema is 3; allowed: a text"));
}

// A config of one instance of delta_hstu_attention with sequences of 5, 0 and 9 rows.
std::string one_delta(const std::string& fields) {
  return R"({"version": 1, "ops": [{"name": "a", "op": "delta_hstu_attention", "attn_dim": 64, "hidden_dim": 64,
             "max_seq_len": 8, "lengths": [5, 0, 9], )" +
         fields + "}]}";
}

std::vector<int64_t> delta_rows(const std::string& text) {
  const auto config = parse_config(text, "m", "");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? make_lengths(config->instances[0], 8).rows_of(kQueryAxis) : std::vector<int64_t>();
}

TEST(Config, DeltaLenSaysTheRowsOfQOfEachSequence) {
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(delta_rows(one_delta(R"("heads": 1)")), (Rows{64, 64, 64}));
  EXPECT_EQ(delta_rows(one_delta(R"("delta_len": 3)")), (Rows{3, 3, 3}));
  EXPECT_EQ(delta_rows(one_delta(R"("delta_len": 0)")), (Rows{0, 0, 0}));
  EXPECT_EQ(delta_rows(one_delta(R"("jagged_queries": true, "delta_len": 3)")), (Rows{3, 3, 3}));
  EXPECT_EQ(delta_rows(one_delta(R"("jagged_queries": true, "delta_len": [2, 0])")), (Rows{2, 0, 2}));
  EXPECT_EQ(delta_rows(one(R"("max_seq_len": 8)")), Rows{}) << "q of all rows";
  const auto config = parse_config(R"({"version": 1, "defaults": {"attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8,
      "lengths": [5], "delta_len": 2}, "ops": [{"name": "a", "op": "delta_hstu_attention"},
      {"name": "b", "op": "hstu_attention"}]})",
                                   "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(make_lengths(config->instances[0], 8).rows_of(kQueryAxis), (Rows{2}));
  EXPECT_EQ(make_lengths(config->instances[1], 8).rows_of(kQueryAxis), Rows{});
}

TEST(Config, ADeltaLenThatIsWrong) {
  EXPECT_EQ(
      error_of(one_delta(R"("delta_len": -1)")),
      "model.json:2:67: ops[0].delta_len is -1; allowed: an integer from 0 to 268435456 (rows of q of a sequence)");
  EXPECT_EQ(
      error_of(one_delta(R"("delta_len": [1, 2])")),
      "model.json:2:67: ops[0].delta_len is [1,2], but every sequence has the same number of rows of q; allowed: an "
      "integer from 0 to 268435456 (rows of q of a sequence), or jagged_queries=true with a list of them");
  EXPECT_THAT(error_of(one_delta(R"("jagged_queries": true, "delta_len": [])")),
              HasSubstr("ops[0].delta_len is []; allowed: a list of at least one delta_len"));
  EXPECT_THAT(error_of(one_delta(R"("jagged_queries": true, "delta_len": [1, 0.5])")),
              HasSubstr("ops[0].delta_len[1] is 0.5; allowed: an integer"));
  EXPECT_THAT(error_of(one(R"("max_seq_len": 8, "delta_len": 3)")),
              HasSubstr("ops[0].delta_len (value 3) is not a known field"));
}

TEST(Config, SmallBatchesAreAskedForWhereThereAreKernelsForThem) {
  const auto one = [](const std::string& op, const std::string& value) {
    return R"({"version": 1, "ops": [{"name": "a", "op": ")" + op +
           R"(", "heads": 1, "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8, "small_batches": )" + value + "}]}";
  };
  EXPECT_TRUE(parse_config(one("hstu_attention", "true"), "model.json", "")->instances[0].small_batches);
  EXPECT_FALSE(parse_config(one("hstu_attention", "false"), "model.json", "")->instances[0].small_batches);
  EXPECT_EQ(error_of(one("hstu_attention", "1")),
            "model.json:1:141: ops[0].small_batches is 1; allowed: true or false");
  EXPECT_THAT(error_of(one("delta_hstu_attention", "true")),
              HasSubstr("ops[0].small_batches (value true) is not a known field"));
}

TEST(Config, NamesAreRequiredPlainAndUnique) {
  const std::string tail = R"("op": "hstu_attention", "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 64})";
  EXPECT_THAT(error_of(R"({"version": 1, "ops": [{)" + tail + "]}"),
              HasSubstr("ops[0].name is missing; allowed: letters"));
  EXPECT_THAT(error_of(R"({"version": 1, "ops": [{"name": "a/b", )" + tail + "]}"),
              HasSubstr("ops[0].name is \"a/b\"; allowed: letters"));
  const auto named = [&](size_t letters) {
    return parse_config(R"([{"name": ")" + std::string(letters, 'n') + R"(", )" + tail + "]", "m", "").status();
  };
  EXPECT_EQ(named(100).message(), "");
  EXPECT_THAT(named(101).message(), HasSubstr("; allowed: letters, digits, '_', '-' and '.', at most 100,"));
  for (const char* dots : {".", ".."}) {  // names become names of folders
    EXPECT_THAT(error_of(R"({"version": 1, "ops": [{"name": ")" + std::string(dots) + R"(", )" + tail + "]}"),
                HasSubstr("ops[0].name"));
  }
  EXPECT_THAT(error_of(R"({"version": 1, "ops": [{"name": "a", )" + tail + R"(, {"name": "a", )" + tail + "]}"),
              HasSubstr("ops[1].name is \"a\"; allowed: a name that ops[0] does not have already"));
}

TEST(Config, ADirectionWithoutKernelIsAMistake) {
  const Status status = status_of(one_delta(R"("directions": ["forward", "backward"])"));
  EXPECT_EQ(status.code(), Code::kInvalidConfig);
  EXPECT_EQ(status.message(),
            "model.json:2:80: ops[0].directions[1] is \"backward\", but delta_hstu_attention has no backward kernel; "
            "allowed: \"forward\"");
}

TEST(Config, LengthsAreTheSameEveryTimeAndWithinBounds) {
  const auto config = parse_config(
      one(R"("max_seq_len": 100, "lengths": {"distribution": "uniform", "low": 0.5, "high": 1.0, "batch": 500, "seed": 3})"),
      "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Lengths lengths = make_lengths(config->instances[0], 100);
  EXPECT_EQ(lengths.rows, make_lengths(config->instances[0], 100).rows);
  EXPECT_EQ(lengths.rows.size(), 500u);
  EXPECT_EQ(*std::min_element(lengths.rows.begin(), lengths.rows.end()), 50);
  EXPECT_EQ(*std::max_element(lengths.rows.begin(), lengths.rows.end()), 100);
  EXPECT_EQ((std::vector<int64_t>(lengths.rows.begin(), lengths.rows.begin() + 4)),
            (std::vector<int64_t>{69, 85, 62, 55}));
  EXPECT_TRUE(lengths.num_targets.empty());
}

TEST(Config, LengthsThatAreWrong) {
  const auto with = [](const std::string& lengths) { return one(R"("max_seq_len": 64, "lengths": )" + lengths); };
  EXPECT_THAT(error_of(with("[]")), HasSubstr("ops[0].lengths is []; allowed: a list of at least one length"));
  EXPECT_THAT(error_of(with("[1, -2]")), HasSubstr("ops[0].lengths[1] is -2; allowed: an integer from 0"));
  EXPECT_THAT(error_of(with("5")), HasSubstr("ops[0].lengths is 5; allowed: a list of lengths"));
  EXPECT_THAT(error_of(with(R"({"distribution": "zipf"})")),
              HasSubstr("ops[0].lengths.distribution is \"zipf\"; allowed: uniform"));
  EXPECT_THAT(error_of(with(R"({"low": 0.9, "high": 0.5})")),
              HasSubstr("ops[0].lengths.low is 0.9; allowed: a number up to \"high\""));
  EXPECT_THAT(error_of(with(R"({"low": 1.5})")), HasSubstr("ops[0].lengths.low is 1.5; allowed: a number from 0 to 1"));
  EXPECT_THAT(error_of(with(R"({"bach": 3})")),
              HasSubstr("ops[0].lengths.bach (value 3) is not a known field, did you mean \"batch\"?"));
  EXPECT_THAT(status_of(with(R"({"file": "none.txt"})")).message(), HasSubstr("none.txt"));
}

TEST(Config, FilesAreRelativeToTheConfig) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  std::ofstream(folder->path() / "lengths.txt") << "# from a log\n12\n\n 7 \r\n";
  std::ofstream(folder->path() / "bad.txt") << "12\nx7\n";
  std::ofstream(folder->path() / "board.json")
      << R"({"name": "Board", "arch": "sm_90a", "sm_count": 10, "shared_memory": 1000})";
  const auto with = [&](const std::string& file) {
    std::string text = one(R"("max_seq_len": 64, "lengths": {"file": ")" + file + "\"}");
    text.insert(1, R"("device": "board.json", )");
    std::ofstream(folder->path() / "model.json") << text;
    return load_config(folder->path() / "model.json");
  };
  const auto config = with("lengths.txt");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->device->sm_count, 10);
  EXPECT_EQ(make_lengths(config->instances[0], 64).rows, (std::vector<int64_t>{12, 7}));
  EXPECT_THAT(with("bad.txt").status().message(),
              HasSubstr("bad.txt:2: the line is no length; allowed: an integer from 0"));
  // It may be any file, and any kind of file.
  EXPECT_THAT(with("bad.txt").status().message(), testing::Not(HasSubstr("x7")));
  std::ofstream(folder->path() / "secret.txt") << "7\nTOKEN=secret\n";
  EXPECT_THAT(with("secret.txt").status().message(),
              testing::AllOf(HasSubstr("secret.txt:2"), testing::Not(HasSubstr("TOKEN"))));
  EXPECT_THAT(with("/proc/self/environ").status().message(),
              testing::AllOf(HasSubstr(":1: "), testing::Not(HasSubstr("PATH="))));
  EXPECT_THAT(with("/dev/zero").status().message(), HasSubstr("it is a device, no regular file"));
  EXPECT_EQ(load_config(folder->path() / "none.json").status().code(), Code::kNotFound);
}

// Three ops that say no more than `fields`, and take the rest from the defaults.
std::string three(const std::string& defaults, const std::string& fields = R"("op": "delta_hstu_attention")") {
  std::string ops;
  for (const char* name : {"a", "b", "c"})
    ops += fmt::format(R"({}{{"name": "{}", {}}})", ops.empty() ? "" : ",", name, fields);
  return R"({"version": 1, "defaults": {"attn_dim": 64, "hidden_dim": 64, )" + defaults + R"(}, "ops": [)" + ops + "]}";
}

TEST(Config, DefaultsAreSharedByTheOpsThatTakeThem) {
  const auto config = parse_config(
      three(R"("lengths": [12, 7], "max_seq_len": [16, 8], "jagged_queries": true, "delta_len": [1, 2])"), "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Instance& first = config->instances[0];
  EXPECT_EQ(first.lengths.list, (std::vector<int64_t>{12, 7}));
  EXPECT_EQ(first.max_seq_lens, (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(first.delta_lens, (std::vector<int64_t>{1, 2}));
  for (const Instance& other : config->instances) {
    EXPECT_EQ(&other.lengths.list.values(), &first.lengths.list.values());
    EXPECT_EQ(&other.max_seq_lens.values(), &first.max_seq_lens.values());
    EXPECT_EQ(&other.delta_lens.values(), &first.delta_lens.values());
  }
}

TEST(Config, AFileOfLengthsIsReadOnce) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  std::ofstream(folder->path() / "lengths.txt") << "12\n7\n";
  std::ofstream(folder->path() / "bad.txt") << "x\n";
  const auto entry = [](const char* name, const char* file) {
    return fmt::format(R"({{"name": "{}", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64,
                          "lengths": {{"file": "{}"}}}})",
                       name, file);
  };
  const auto config =
      parse_config("[" + entry("a", "lengths.txt") + "," + entry("b", "./lengths.txt") + "]", "m", folder->path());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->instances[0].lengths.list, (std::vector<int64_t>{12, 7}));
  EXPECT_EQ(&config->instances[0].lengths.list.values(), &config->instances[1].lengths.list.values());
  const Status status =
      parse_config("[" + entry("a", "bad.txt") + "," + entry("b", "bad.txt") + "]", "m", folder->path()).status();
  EXPECT_THAT(status.message(), HasSubstr("[0].lengths.file: "));
  EXPECT_THAT(status.message(), HasSubstr("[1].lengths.file: ")) << "who names it";
}

TEST(Config, MistakesOfADefaultAreCountedOnce) {
  std::string lengths = "-1";
  for (int i = 1; i < 30; ++i) lengths += ", -1";
  const std::string error = error_of(three(R"("max_seq_len": 8, "lengths": [)" + lengths + "]"));
  EXPECT_THAT(error,
              HasSubstr("defaults.lengths[19] is -1; allowed: an integer from 0 to 268435456 (rows of a sequence)"));
  EXPECT_THAT(error, EndsWith("model.json: and 10 more"));
}

// Each op copied what it takes, and wrote all of it down for a message that shows sixty letters: minutes.
TEST(Config, ALargeDefaultCostsNoOpAnything) {
  if (kSanitized) GTEST_SKIP() << "a time of a sanitized build says nothing";
  std::string list = "[0";
  for (int i = 0; i < 300'000; ++i) list += ",0";
  list += "]";
  std::string ops;
  for (int i = 0; i < 1000; ++i) {
    ops +=
        fmt::format(R"({}{{"name": "a{}", "op": "hstu_attention", "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8}})",
                    i == 0 ? "" : ",", i);
  }
  for (const char* name : {"lengths", "dtype", "directions", "alpha", "small_batches", "num_targets"}) {
    const auto start = std::chrono::steady_clock::now();
    const std::string text = fmt::format(R"({{"version": 1, "defaults": {{"{}": {}}}, "ops": [{}]}})", name, list, ops);
    const Status status = status_of(text);
    EXPECT_EQ(status.ok(), std::string_view(name) == "lengths");
    EXPECT_LT(status.message().size(), 1000u);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << name;
  }
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

TEST(Config, NothingOfADeviceFileIsShown) {
  const auto folder = TempDir::create();
  ASSERT_TRUE(folder.ok());
  for (const char* const text :
       {"TOKEN=1", R"({"TOKEN": 1})", R"({"name": "TOKEN", "arch": "TOKEN", "sm_count": 0})"}) {
    std::ofstream(folder->path() / "secret") << text;
    std::string config = one(R"("max_seq_len": 64)");
    config.insert(1, R"("device": "secret", )");
    const std::string message = parse_config(config, "m", folder->path()).status().message();
    EXPECT_THAT(message, HasSubstr("device is \"secret\", which is no DeviceSpec file")) << text;
    EXPECT_THAT(message, testing::Not(HasSubstr("TOKEN"))) << text;
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
  EXPECT_TRUE(parse_config(one(lengths(10'000)), "m", "").ok());
  EXPECT_THAT(parse_config(one(lengths(10'001)), "m", "").status().message(),
              HasSubstr("max_seq_len has 10001 entries; allowed: at most 10000"));
  EXPECT_THAT(
      parse_config(one(lengths(6'000) + R"(, "directions": ["forward", "backward"])"), "m", "").status().message(),
      HasSubstr("ops has 12000 kernels; allowed: at most 10000 kernels, one for each step of each instance"));
  EXPECT_THAT(parse_config(one(lengths(6'000) + R"(, "small_batches": true)"), "m", "").status().message(),
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
    return parse_config(one(fields), "m", "").status().message();
  };
  EXPECT_THAT(mistakes_of("\"max_seq_len\": 8, \"lengths\": [" + texts + "]"), HasSubstr("and 1999981 more"));
  EXPECT_THAT(mistakes_of("\"max_seq_len\": 8" + names), HasSubstr("and 129980 more"));
  EXPECT_THAT(mistakes_of("\"max_seq_len\": 8, \"directions\": [" + directions + "]"),
              HasSubstr("allowed: a list of \"forward\", \"backward\" or both"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(Config, AlphaFitsIntoFp32) {
  EXPECT_TRUE(parse_config(one(R"("max_seq_len": 8, "alpha": -3e38)"), "m", "").ok());
  for (const char* alpha : {"3.5e38", "-1e41", "1e300"}) {
    EXPECT_THAT(parse_config(one(fmt::format(R"("max_seq_len": 8, "alpha": {})", alpha)), "m", "").status().message(),
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
  EXPECT_THAT(mistakes_of(R"(, "rows": 3, "alpha": 1)"), HasSubstr("ops[0].alpha (value 1) is not a known field"));
  EXPECT_THAT(mistakes_of(R"(, "rows": 3, "lengths": [1])"),
              HasSubstr("ops[0].lengths (value [1]) is not a known field"));
}

// What the others of a config share is no part of an operator that has no such thing.
TEST(Config, DefaultsAreForThoseWhoTakeThem) {
  const auto config = parse_config(R"({"version": 1,
      "defaults": {"op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": [8, 16],
                   "lengths": [3, 5], "small_batches": true},
      "ops": [{"name": "attention"}, {"name": "norm", "op": "layer_norm", "width": 8, "rows": 5}]})",
                                   "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->instances[0].max_seq_lens, (std::vector<int64_t>{8, 16}));
  EXPECT_EQ(config->instances[1].max_seq_lens, (std::vector<int64_t>{5}));
  EXPECT_EQ(make_lengths(config->instances[1], 5).rows, (std::vector<int64_t>{5}));
}

TEST(Config, SmallBatchesAreForwardOnly) {
  EXPECT_THAT(parse_config(one(R"("max_seq_len": 8, "small_batches": true, "directions": ["backward"])"), "m", "")
                  .status()
                  .message(),
              HasSubstr("ops[0].small_batches is true, but hstu_attention has kernels for small batches forward only"));
  EXPECT_TRUE(
      parse_config(one(R"("max_seq_len": 8, "small_batches": true, "directions": ["backward", "forward"])"), "m", "")
          .ok());
}

TEST(Config, TheSizeOfABatchIsCountedWithoutDrawingIt) {
  const auto config = parse_config(one(R"("max_seq_len": 100, "num_targets": 3, "lengths": [20, 0, 200, 7])"), "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Instance& instance = config->instances[0];
  EXPECT_EQ(batch_sequences(instance), 4);
  EXPECT_EQ(batch_size(instance, 100).sequences, 4);
  EXPECT_EQ(batch_size(instance, 100).rows, 127);
  const Lengths cut = make_lengths(instance, 100, 21);
  EXPECT_EQ(cut.rows, (std::vector<int64_t>{20, 0, 1}));
  EXPECT_EQ(cut.num_targets, (std::vector<int64_t>{3, 0, 1}));
  EXPECT_EQ(batch_size(instance, 100, 21).rows, 21);
  const auto drawn = parse_config(one(R"("max_seq_len": 100, "lengths": {"batch": 50})"), "m", "");
  const Lengths all = make_lengths(drawn->instances[0], 100);
  EXPECT_EQ(batch_size(drawn->instances[0], 100).rows, all.total_rows());
  EXPECT_EQ(all.rows.size(), 50u);
  EXPECT_EQ(batch_sequences(drawn->instances[0]), 50);
}

// A batch of 2^28 sequences, of which as many are drawn as are used.
TEST(Config, NoMoreOfABatchIsDrawnThanIsUsed) {
  const auto config =
      parse_config(one(R"("max_seq_len": 100, "num_targets": 3, "lengths": {"batch": 268435456})"), "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  const Instance& instance = config->instances[0];
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(batch_sequences(instance), 268435456);
  EXPECT_EQ(make_lengths(instance, 100, 50).total_rows(), 50);
  const Lengths small = make_small_lengths(instance, 100, 4);
  EXPECT_EQ(small.rows, (std::vector<int64_t>{100}));
  EXPECT_EQ(small.num_targets, (std::vector<int64_t>{3}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

TEST(Config, CountsHaveOneBound) {
  const std::string max = "268435456", more = "268435457";
  const auto norm = [](const std::string& rows) {
    return R"({"version": 1, "ops": [{"name": "n", "op": "layer_norm", "width": 8, "rows": )" + rows + "}]}";
  };
  EXPECT_TRUE(parse_config(norm(max), "m", "").ok());
  EXPECT_THAT(parse_config(norm(more), "m", "").status().message(), HasSubstr(max));
  for (const std::string field : {"\"max_seq_len\": ", "\"max_seq_len\": 64, \"lengths\": {\"batch\": "}) {
    const std::string end = field.ends_with("\"batch\": ") ? "}" : "";
    for (const std::string& count : {more, std::string("18446744073709551615"), std::string("1e400")}) {
      const Status status = parse_config(one(field + count + end), "m", "").status();
      EXPECT_EQ(status.code(), Code::kInvalidConfig) << field << count;
      EXPECT_THAT(status.message(), testing::AnyOf(HasSubstr(max), HasSubstr("out of range"))) << field << count;
    }
  }
}

TEST(Config, RowsStandForOneSequence) {
  const auto config =
      parse_config(R"({"version": 1, "ops": [{"name": "n", "op": "layer_norm", "width": 8, "rows": 1000}]})", "m", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->instances[0].max_seq_lens, (std::vector<int64_t>{1000}));
  EXPECT_EQ(make_lengths(config->instances[0], 1000).rows, (std::vector<int64_t>{1000}));
}

// The recorded baselines hold the number of valid pairs and rows that other programs counted for the same shapes.
TEST(Grid, WorkAgreesWithTheRecordedBaselines) {
  const std::filesystem::path bench = std::filesystem::path(kSource) / "bench";
  const auto list = whole_file(bench / "grid.json");
  ASSERT_TRUE(list.ok()) << list.status().message();
  const auto grid = parse_config(fmt::format(R"({{"version": 1, "ops": {}}})", *list), "grid", bench);
  ASSERT_TRUE(grid.ok()) << grid.status().message();
  const auto text = whole_file(bench / "baselines/peers_h200_attention.json");
  ASSERT_TRUE(text.ok());
  const Json baselines = Json::parse(*text);
  ASSERT_EQ(grid->instances.size(), baselines.size());
  for (const Instance& instance : grid->instances) {
    const auto& params = static_cast<const HstuAttentionSpec&>(*instance.spec).params();
    const Lengths lengths = make_lengths(instance, instance.max_seq_lens[0]);
    const Work work = instance.spec->work(Direction::kForward, lengths);
    const double pairs = baselines[instance.name]["valid_pairs_per_head"].get<double>();
    EXPECT_EQ(work.flops, 2.0 * static_cast<double>(params.heads * (params.attn_dim + params.hidden_dim)) * pairs)
        << instance.name;
    EXPECT_EQ(std::accumulate(lengths.rows.begin(), lengths.rows.end(), int64_t{0}), baselines[instance.name]["rows"])
        << instance.name;
    EXPECT_EQ(instance.alpha, 1.0 / static_cast<double>(params.attn_dim));
  }
}

}  // namespace
}  // namespace hstujit
