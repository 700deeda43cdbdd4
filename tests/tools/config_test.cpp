// The commands that read a config: what they say of one with mistakes, and of a good one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "compiler/support/text.h"
#include "tests/tools/exit_codes.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Config, AMissingFileIsNamed) {
  for (const char* command : {"check", "prewarm", "run", "emit", "explain", "tune", "bench"}) {
    const Outcome outcome = hstujit_tool({command, "--config", "/nonexistent/model.json"});
    EXPECT_EQ(outcome.code, kBadRequest) << command;
    EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/model.json")) << command;
  }
  EXPECT_EQ(hstujit_tool({"bench", "--grid", "/nonexistent/grid.json"}).code, kBadRequest);
  EXPECT_EQ(hstujit_tool({"bench", "--grid", "/"}).code, kBadRequest);
  EXPECT_EQ(hstujit_tool({"tune", "--from", "/nonexistent/misses"}).code, kBadRequest);
}

// Whatever it is that a command line names as a file to read.
TEST(Config, WhatCannotBeReadAsAFileIsABadRequest) {
  const Scratch scratch;
  const std::string config = scratch.config();
  const std::string endless = scratch.file("endless", "");
  std::filesystem::resize_file(endless, uint64_t{1} << 40);
  for (const std::string& path : std::vector<std::string>{"/", "/dev/null", "/proc/self/mem", endless}) {
    const std::vector<std::vector<std::string>> commands = {{"check", "--config", path},
                                                            {"run", "--config", path, "--backend", "host"},
                                                            {"bench", "--grid", path},
                                                            {"tune", "--from", path},
                                                            {"explain", "--config", config, "--arch", path},
                                                            {"cache", "import", path, "--cache-dir", scratch.cache()}};
    for (const std::vector<std::string>& command : commands) {
      const Outcome outcome = hstujit_tool(command);
      EXPECT_EQ(outcome.code, kBadRequest) << testing::PrintToString(command) << outcome.err;
      const std::string option =
          command[1] == "import" ? "FILE" : *(std::find(command.begin(), command.end(), path) - 1);
      EXPECT_THAT(outcome.err, StartsWith("hstujit: " + option + ": cannot read \"" + path + "\": "));
    }
  }
}

TEST(Recording, AFileOfOtherLinesIsNamed) {
  const Scratch scratch;
  const Outcome outcome = hstujit_tool({"tune", "--from", scratch.file("misses", "{\"name\": \"old\"}\n")});
  EXPECT_EQ(outcome.code, kBadRequest);
  EXPECT_THAT(outcome.err, HasSubstr("misses:1: no whole line of HSTUJIT_RECORD"));
}

TEST(Config, MalformedJsonIsNamedByLineAndColumn) {
  const Scratch scratch;
  const std::string path = scratch.file("bad.json", "{\n  \"version\": 1,\n  \"ops\": [}\n");
  const Outcome outcome = hstujit_tool({"prewarm", "--config", path, "--arch", "sm_90a"});
  EXPECT_EQ(outcome.code, kBadRequest);
  EXPECT_THAT(outcome.err, HasSubstr(path + ":3:11: malformed JSON"));

  const Outcome grid = hstujit_tool({"bench", "--grid", scratch.file("grid.json", "[\n{,}]")});
  EXPECT_EQ(grid.code, kBadRequest);
  EXPECT_THAT(grid.err, HasSubstr("grid.json:2:2: malformed JSON"));
}

TEST(Config, AGridIsAListAndItsMistakesHavePlaces) {
  const Scratch scratch;
  const Outcome object = hstujit_tool({"bench", "--grid", scratch.config()});
  EXPECT_EQ(object.code, kBadRequest);
  EXPECT_THAT(object.err, HasSubstr("config.json: a grid is a JSON list of op instances; a config goes to --config"));
  const std::string path = scratch.file("grid.json", "[\n  {\"name\": \"a\", \"op\": \"none\", \"max_seq_len\": 8}]");
  const Outcome wrong = hstujit_tool({"bench", "--grid", path});
  EXPECT_EQ(wrong.code, kBadRequest);
  EXPECT_THAT(wrong.err, HasSubstr(path + ":2:23: [0].op is \"none\"; allowed: "));
}

// Two mistakes of one kind and one of another, each on a line of its own.
constexpr char kThreeMistakes[] = R"({"version": 1, "ops": [
  {"name": "a", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64, "dtype": "bfloat16"},
  {"name": "b", "op": "construct_full_kv", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64,
   "directions": ["backward"]},
  {"name": "c", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64, "num_heads": 4}]})";

TEST(Config, EveryMistakeIsALineOfItsOwn) {
  const Scratch scratch;
  const std::string path = scratch.file("three.json", kThreeMistakes);
  for (const char* command : {"check", "prewarm", "explain", "run"}) {
    const Outcome outcome = hstujit_tool({command, "--config", path});
    EXPECT_EQ(outcome.code, kBadRequest) << command;
    EXPECT_EQ(outcome.out, "") << command;
    const auto lines = split(outcome.err, '\n');
    ASSERT_EQ(lines.size(), 4u) << outcome.err;  // the last one is empty
    EXPECT_THAT(lines[0],
                StartsWith("hstujit: " + path + ":2:103: ops[0].dtype is \"bfloat16\", did you mean \"bf16\"?"));
    EXPECT_THAT(lines[1], StartsWith("hstujit: " + path + ":4:19: ops[1].directions[0] is \"backward\", but "));
    EXPECT_THAT(lines[1], HasSubstr("has no backward kernel; allowed: \"forward\""));
    EXPECT_THAT(lines[2], StartsWith("hstujit: " + path +
                                     ":5:94: ops[2].num_heads (value 4) is not a known field of hstu_attention, did "
                                     "you mean \"heads\"?"));
  }
}

TEST(Check, AStepOfAProgramHasAName) {
  const Scratch scratch;
  const std::string path =
      scratch.file("layer.json", R"({"version": 1, "ops": [{"name": "layer", "op": "norm_attention",
    "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 128},
    {"name": "ranking", "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 128}]})");
  const auto with = [&](const std::string& command, const std::string& op) {
    return hstujit_tool({command, "--config", path, "--op", op, "--cache-dir", scratch.cache()});
  };
  EXPECT_EQ(with("check", "layer").last_line(), "valid: 1 instance, 2 keys");
  const Outcome step = with("check", "layer/hstu_attention");
  EXPECT_EQ(step.last_line(), "valid: 1 instance, 1 key") << step.err;
  const Outcome unknown = with("check", "layer/norm");
  EXPECT_EQ(unknown.code, kBadRequest);
  EXPECT_EQ(unknown.err,
            "hstujit: --op \"layer/norm\" is no step of \"layer\"; allowed: layer/hstu_attention, layer/layer_norm\n");
  EXPECT_THAT(with("check", "layer/layer_nrom").err, HasSubstr("did you mean \"layer/layer_norm\"?; allowed: "));
  const Outcome launched = with("run", "layer/layer_norm");
  EXPECT_EQ(launched.code, kBadRequest);
  EXPECT_THAT(launched.err, HasSubstr("\"layer/layer_norm\" is a step, which is launched with all of its op; allowed: "
                                      "\"layer\""));
  // A name that run would not take either is not suggested.
  const std::string no_step = "is no step, and steps are launched with all of their op; allowed: \"layer\"\n";
  EXPECT_EQ(with("run", "layer/norm").err, "hstujit: --op \"layer/norm\" " + no_step);
  EXPECT_EQ(with("run", "layer/").err, "hstujit: --op \"layer/\" " + no_step);
  for (const char* command : {"check", "run"}) {
    EXPECT_EQ(with(command, "ranking/foo").err,
              "hstujit: --op \"ranking/foo\" is no step: hstu_attention is no program and has none; allowed: "
              "\"ranking\"\n");
    for (const std::string of_none : {"/", "//", "/layer", "/layer_norm"}) {
      const Outcome refused = with(command, of_none);
      EXPECT_EQ(refused.code, kBadRequest);
      EXPECT_THAT(refused.err, StartsWith("hstujit: --op \"" + of_none + "\" is not in the config"));
    }
  }
}

TEST(Check, AnOperatorOverRowsHasNoLengths) {
  const Scratch scratch;
  const std::string path = scratch.file("rows.json", R"({"version": 1, "ops": [
    {"name": "norm", "op": "layer_norm", "width": 64, "rows": 100}]})");
  const Outcome explained =
      hstujit_tool({"explain", "--config", path, "--arch", "H200", "--cache-dir", scratch.cache()});
  EXPECT_THAT(explained.out, HasSubstr("\nnorm forward\n  tuning ")) << explained.out << explained.err;
  const Outcome checked = hstujit_tool({"check", "--config", path, "--arch", "H200", "--cache-dir", scratch.cache()});
  EXPECT_THAT(checked.out, testing::Not(HasSubstr("max_seq_len"))) << checked.out;
  const auto keys = hstujit_tool({"check", "--config", path, "--json", "--cache-dir", scratch.cache()}).json();
  EXPECT_EQ(keys["instances"][0]["keys"][0]["max_seq_len"], nullptr);
  EXPECT_EQ(keys["instances"][0]["keys"][0]["bucket"], nullptr);
}

TEST(Check, ACacheThatIsOfNoUseIsNamed) {
  const Scratch scratch;
  const std::string config = scratch.config(), bad = scratch.file("bad.tar", "no bundle");
  const std::string missing = (scratch.path() / "missing").string();
  const Variables variables = {{"HSTUJIT_CACHE_PATH", missing + ":" + bad}};
  for (const char* command : {"check", "explain"}) {
    const Outcome outcome =
        hstujit_tool({command, "--config", config, "--arch", "sm_90a", "--cache-dir", scratch.cache()}, variables);
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("hstujit: warning: nothing of " + missing +
                                       " is used: it does not exist; HSTUJIT_CACHE_PATH names "));
    EXPECT_THAT(outcome.err, HasSubstr("hstujit: warning: nothing of " + bad + " is used: "));
    EXPECT_THAT(outcome.out, testing::Not(HasSubstr(missing)));
  }
  const Outcome unknown = hstujit_tool({"check", "--config", config, "--op", "none"}, variables);
  EXPECT_EQ(unknown.code, kBadRequest);
  EXPECT_EQ(unknown.out, "") << "nothing was done";
}

TEST(Check, MistakesAreAReportToo) {
  const Scratch scratch;
  const Outcome outcome = hstujit_tool({"check", "--config", scratch.file("three.json", kThreeMistakes), "--json"});
  EXPECT_EQ(outcome.code, kBadRequest);
  EXPECT_EQ(outcome.err, "");
  const auto report = outcome.json();
  EXPECT_EQ(report["valid"], false);
  ASSERT_EQ(report["mistakes"].size(), 3u) << outcome.out;
  EXPECT_THAT(report["mistakes"][0].get<std::string>(), HasSubstr("three.json:2:103: ops[0].dtype is"));
}

TEST(Check, SaysWhatIsCompiled) {
  const Scratch scratch;
  const Variables no_gpu = {{"HSTUJIT_CUDA_DRIVER", "/nonexistent/libcuda.so.1"}};
  const std::string path = scratch.file("model.json", R"({"version": 1, "ops": [
    {"name": "ranker", "op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "dtype": "fp16",
     "directions": ["forward", "backward"], "max_seq_len": [100, 128, 1000]},
    {"name": "decode", "op": "delta_hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 500}]})");
  const auto check = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"check", "--config", path, "--cache-dir", scratch.cache()});
    return hstujit_tool(arguments, no_gpu);
  };
  const Outcome unknown = check({});
  EXPECT_EQ(unknown.code, kDone) << unknown.err;
  EXPECT_EQ(unknown.last_line(), "valid: 2 instances, 5 keys");
  for (const char* part :
       {"ranker: hstu_attention, 4 keys\n  dtype=fp16 heads=2 attn_dim=64 hidden_dim=64\n",
        "decode: delta_hstu_attention, 1 key\n  dtype=bf16 heads=1 ", "100, 128", "device: none; pass --arch"}) {
    EXPECT_THAT(unknown.out, HasSubstr(part));
  }
  EXPECT_THAT(unknown.out, testing::Not(HasSubstr("from")));

  const Outcome known = check({"--arch", "H200", "--json"});
  EXPECT_EQ(known.code, kDone) << known.err;
  const auto report = known.json();
  EXPECT_EQ(report["valid"], true);
  EXPECT_EQ(report["device"]["arch"], "sm_90a");
  EXPECT_EQ(report["keys"], 9);
  const auto keys = report["instances"][0]["keys"];
  ASSERT_EQ(keys.size(), 8u) << known.out;
  EXPECT_EQ(keys[0]["bucket"], 128);
  EXPECT_EQ(keys[0]["max_seq_len"], nlohmann::json({100, 128}));
  EXPECT_EQ(keys[1]["bucket"], 128);
  EXPECT_EQ(keys[1]["short_sequences"], true);
  EXPECT_EQ(keys[2]["bucket"], 1024);
  EXPECT_EQ(keys[7]["direction"], "backward");
  for (const auto& key : keys) {
    EXPECT_FALSE(key["config"]["skeleton"].get<std::string>().empty());
    EXPECT_FALSE(key["why"].get<std::string>().empty());
  }
  EXPECT_THAT(check({"--arch", "H200"}).out, HasSubstr("from"));
  EXPECT_EQ(check({"--op", "decode"}).last_line(), "valid: 1 instance, 1 key");
  EXPECT_EQ(check({"--op", "none"}).code, kBadRequest);
  EXPECT_EQ(check({"--arch", "sm_1"}).code, kBadRequest);
}

TEST(Config, WrongFieldsAreNamedByPath) {
  const Scratch scratch;
  const Outcome unknown = hstujit_tool({"explain", "--config", scratch.config(R"("max_atn_len": 5)")});
  EXPECT_EQ(unknown.code, kBadRequest);
  EXPECT_THAT(unknown.err, HasSubstr("ops[0].max_atn_len"));
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"max_attn_len\"?"));

  const Outcome op =
      hstujit_tool({"explain", "--config",
                    scratch.file("op.json", R"({"version": 1, "ops": [{"name": "a", "op": "hstu_atention"}]})")});
  EXPECT_EQ(op.code, kBadRequest);
  EXPECT_THAT(op.err, HasSubstr("hstu_atention"));
  EXPECT_THAT(op.err, HasSubstr("hstu_attention"));
}

TEST(Config, AnUnknownInstanceIsNamedWithThoseThereAre) {
  const Scratch scratch;
  for (const char* command : {"prewarm", "emit", "explain", "run"}) {
    std::vector<std::string> arguments = {command, "--config", scratch.config(), "--op", "large"};
    if (std::string(command) != "run") arguments.insert(arguments.end(), {"--arch", "sm_90a"});
    const Outcome outcome = hstujit_tool(arguments);
    EXPECT_EQ(outcome.code, kBadRequest) << command;
    EXPECT_THAT(outcome.err, HasSubstr("hstujit: --op \"large\" is not in the config; it has: small")) << command;
  }
}

TEST(Config, AnUnknownArchitectureIsABadRequest) {
  const Scratch scratch;
  const Outcome outcome = hstujit_tool({"explain", "--config", scratch.config(), "--arch", "sm_12"});
  EXPECT_EQ(outcome.code, kBadRequest);
  EXPECT_THAT(outcome.err, HasSubstr("hstujit: --arch \"sm_12\" is not known"));
  const Outcome product = hstujit_tool({"explain", "--config", scratch.config(), "--arch", "RTX4090"});
  EXPECT_EQ(product.code, kBadRequest);
  EXPECT_THAT(product.err, HasSubstr("of that name, did you mean \"RTX 4090\"?; allowed: sm_80, "));
}

}  // namespace
}  // namespace hstujit
