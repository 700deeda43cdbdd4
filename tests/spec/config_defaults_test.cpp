// Fields that the ops of a config share.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>

#include "compiler/spec/batch.h"
#include "tests/spec/config_text.h"
#include "tests/support/sanitized.h"

namespace hstujit {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// A user who writes a default means something by it, also where no entry has any use for it yet.
TEST(Config, ADefaultThatNoEntryTakesIsHeldToItsRules) {
  const auto config_with = [](const std::string& defaults) {
    return R"({"version": 1, "defaults": {)" + defaults +
           R"(}, "ops": [{"name": "a", "op": "layer_norm", "width": 8, "rows": 3}]})";
  };
  const auto with = [&](const std::string& defaults) { return config_error(config_with(defaults)); };
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
    return R"({"version": 1, "defaults": {)" + defaults + R"(}, "ops": [{"name": "a", "op": "layer_norm", "rows": 5)" +
           fields + "}]}";
  };
  EXPECT_THAT(config_error(with(R"("hidden_dim": 8)")),
              HasSubstr("defaults.hidden_dim (value 8) is a field of no entry, did you mean \"width\"? layer_norm has "
                        "that"));
  for (const std::string& good : {with(R"("hidden_dim": 8, "width": 8)"), with(R"("hidden_dim": 8)", R"(, "width": 8)"),
                                  with(R"("concat_x": true, "width": 8)")})
    EXPECT_TRUE(parse_config(good, "test", "").ok()) << good;
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

TEST(Config, MistakesOfADefaultAreCountedOnce) {
  std::string lengths = "-1";
  for (int i = 1; i < 30; ++i) lengths += ", -1";
  const std::string error = config_error(three(R"("max_seq_len": 8, "lengths": [)" + lengths + "]"));
  EXPECT_THAT(error,
              HasSubstr("defaults.lengths[19] is -1; allowed: an integer from 0 to 268435456 (rows of a sequence)"));
  EXPECT_THAT(error, EndsWith("model.json: and 10 more"));
}

// Operators describe what they allow in words of their own, and each of them was a line.
TEST(Config, AMistakeOfADefaultThatSeveralOperatorsTakeIsOneLine) {
  const std::string error = config_error(R"({"version": 1, "defaults": {"dtype": "bfloat16", "heads": 0},
      "ops": [{"name": "a", "op": "layer_norm", "width": 8, "rows": 3},
              {"name": "b", "op": "addmm", "k": 8, "n": 8, "rows": 3},
              {"name": "c", "op": "hstu_attention", "attn_dim": 8, "hidden_dim": 8, "max_seq_len": 8}]})");
  EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
  EXPECT_THAT(error, HasSubstr("defaults.dtype is \"bfloat16\", did you mean \"bf16\"?; allowed: bf16, fp16, fp32 ("));
  EXPECT_THAT(error, HasSubstr("; ops[0] takes it"));
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
    const Status status = config_status(text);
    EXPECT_EQ(status.ok(), std::string_view(name) == "lengths");
    EXPECT_LT(status.message().size(), 1000u);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << name;
  }
}

// A default of the other operators of a config is not a part of one that lacks the field.
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

}  // namespace
}  // namespace hstujit
