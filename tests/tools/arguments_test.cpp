// What a user gets for a mistake: one sentence, and the exit code that docs/cli.md promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <regex>
#include <sstream>

#include "autotune_cache/artifact_store.h"
#include "autotune_cache/tuning_database.h"
#include "compiler/support/text.h"
#include "tests/autotune_cache/samples.h"
#include "tests/support/whole_file.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kBadRequest = 2;
constexpr int kUnavailable = 3;

TEST(Arguments, HelpAndVersionAreNoMistakes) {
  const Outcome help = hstujit_tool({"--help"});
  EXPECT_EQ(help.code, kDone);
  for (const char* command : {"check", "prewarm", "tune", "run", "bench", "emit", "freeze", "explain", "doctor",
                              "cache", "completion", "manual"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Outcome own = hstujit_tool({command, "--help"});
    EXPECT_EQ(own.code, kDone) << command;
    EXPECT_FALSE(own.out.empty()) << command;
    std::istringstream lines(own.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << command << ": " << line;
  }
  const Outcome version = hstujit_tool({"--version"});
  EXPECT_EQ(version.code, kDone);
  EXPECT_THAT(version.out, StartsWith("hstujit "));
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string sentence;  // part of standard error
};

TEST(Arguments, MistakesAreNamedAndExitWith2) {
  const std::vector<Mistake> mistakes = {
      {{"polish"},
       "there is no command \"polish\"; commands: check, prewarm, tune, run, bench, emit, freeze, explain, doctor, "
       "cache"},
      {{"prewram"}, "there is no command \"prewram\", did you mean \"prewarm\"?; commands: check, prewarm, "},
      {{"doctor", "--jsn"}, "there is no option --jsn, did you mean \"--json\"?; see hstujit doctor --help"},
      {{"cache", "prune", "--nvrct=12.8"}, "there is no option --nvrct, did you mean \"--nvrtc\"?"},
      {{"prewarm"}, "--config is required; see hstujit prewarm --help"},
      {{"prewarm", "--config", "a", "--speed", "9"}, "there is no option --speed; see hstujit prewarm --help"},
      {{"prewarm", "--config", "a", "--jobs", "0"}, "--jobs"},
      {{"prewarm", "--config", "a", "--jobs", "many"}, "many"},
      {{"run", "--config", "a", "--backend", "tpu"}, "--backend: \"tpu\" is not allowed; allowed: cuda, host"},
      {{"completion", "fihs"}, "SHELL: \"fihs\" is not allowed, did you mean \"fish\"?; allowed: bash, fish, zsh"},
      {{"check", "-c", "a"}, "there is no option -c; see"},
      {{"check", "--config", "a", "--js"}, "there is no option --js, did you mean \"--json\"?"},
      {{"check", "--config", "a", "--config", "b"}, "--config is given more than once"},
      {{"--json", "check", "--config", "a"}, "--json stands before the command; its options come behind it"},
      {{"check", "--config", "/tmp"}, "\"/tmp\""},
      {{"run", "--config", "a", "--backend", "host", "--device", "3"}, "--device is 3; --backend host runs on no CUDA"},
      {{"run", "--config", "a", "--max-rows", "-3"},
       "--max-rows: \"-3\" is not allowed; it must be a whole number from 1 to 268435456"},
      {{"run", "--config", "a", "--seed", "-1"},
       "--seed: \"-1\" is not allowed; it must be a whole number from 0 to 1844674407370"},
      {{"run", "--config", "a", "--seed", "18446744073709551616"}, "\"18446744073709551616\" is not allowed"},
      {{"bench", "--config", "a", "--repeats", "0x10"}, "--repeats: \"0x10\" is not allowed"},
      {{"prewarm", "--config", "a", "--jobs", "+1"}, "--jobs: \"+1\" is not allowed"},
      {{"prewarm", "--config", "a", "--jobs", " 1"}, "--jobs: \" 1\" is not allowed"},
      {{"prewarm", "--config", "a", "--jobs", ""}, "--jobs: \"\" is not allowed"},
      {{"prewarm", "--config", "a", "--wide=3"}, "--wide takes no value; see"},
      {{"prewarm", "--config", "a", "--cache-dir=", "--check"}, "--cache-dir: is empty; leave it out"},
      {{"prewam", "--config", "a"}, "there is no command \"prewam\", did you mean \"prewarm\"?"},
      {{"prewam", "--help"}, "there is no command \"prewam\", did you mean \"prewarm\"?"},
      {{"cache", "lss", "--json"}, "there is no command \"lss\", did you mean \"ls\"?"},
      {{"prewarm", "--config", ""}, "--config: is empty; it must have a value"},
      {{"prewarm", "--config", "a", "--shard", "9/8"},
       "hstujit: --shard: \"9/8\" is not allowed; it must be INDEX/COUNT"},
      {{"tune"}, "--config or --from"},
      {{"tune", "--config", "a", "--from", "b"}, "--from"},
      {{"tune", "--config", "a", "--budget", "soon"},
       "\"soon\" is no duration; allowed: a number above 0 with s, m or h"},
      {{"tune", "--config", "a", "--devices", "0,x"}, "--devices: \"0,x\" is not allowed; it must be whole numbers"},
      {{"tune", "--config", "a", "--devices", "0,,1"}, "--devices: \"0,,1\" is not allowed"},
      {{"tune", "--config", "a", "--devices", "0,1,0"}, "--devices: 0,1,0 names a GPU twice"},
      {{"bench"}, "--config or --grid"},
      {{"bench", "--config", "a", "--grid", "b"}, "--grid"},
      {{"cache", "expert"}, "there is no command \"expert\", did you mean \"export\"?; commands: ls, "},
      {{"cache", "launder"}, "there is no command \"launder\"; commands: ls, verify, prune, export, import, path"},
      {{"doctor", "now"}, "\"now\" is one argument too many; see hstujit doctor --help"},
      {{"cache", "prune"}, "one of --nvrtc and --max-bytes, and no more, is required"},
      {{"cache", "prune", "--nvrtc", "12.8", "--max-bytes", "1"},
       "one of --nvrtc and --max-bytes, and no more, is required"},
      {{"cache", "prune", "--nvrtc", ""}, "--nvrtc: is empty"},
      {{"cache", "prune", "--nvrtc", "x"}, "hstujit: --nvrtc is \"x\"; allowed: a version of NVRTC, two "},
      {{"cache", "list"}, "there is no command \"list\", did you mean \"ls\"?; commands: ls, "},
      {{"help"}, "there is no command \"help\"; commands: check, "},
      {{"check", "model.json"}, "\"model.json\" is one argument too many; a config is named by --config FILE"},
      {{"--config", "model.json", "check"}, "--config model.json stands before the command; its options come behind"},
      {{"completion", "tcsh"}, "SHELL: \"tcsh\" is not allowed; allowed: bash, fish, zsh"},
      {{"cache", "prune", "--max-bytes", "-0"}, "\"-0\" is no size; allowed: a whole number of bytes"},
      {{"cache", "prune", "--max-bytes", "0.4"}, "\"0.4\" is no size"},
      {{"cache", "prune", "--max-bytes", "big"}, "\"big\" is no size"},
      {{"cache", "prune", "--max-bytes", "0", "--cache-dir", ""}, "--cache-dir: is empty; leave it out"},
      {{"check", "--config", "a", "--op", ""}, "--op: is empty; leave it out"},
      {{"cache", "export", ""}, "FILE: is empty; it must have a value"},
      {{"tune", "--config", "a", "--budget", "2147483648"}, "such as 60s, up to 2147483647s"},
  };
  for (const Mistake& mistake : mistakes) {
    const Outcome outcome = hstujit_tool(mistake.arguments);
    const std::string shown = testing::PrintToString(mistake.arguments);
    EXPECT_EQ(outcome.code, kBadRequest) << shown << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("hstujit: ")) << shown;
    EXPECT_THAT(outcome.err, HasSubstr(mistake.sentence)) << shown;
    EXPECT_EQ(outcome.out, "") << shown;
  }
}

TEST(Arguments, HelpHasNothingOfTheParsersOwn) {
  EXPECT_THAT(hstujit_tool({"cache", "prune", "--help"}).out, testing::Not(HasSubstr("[Option Group")));
  EXPECT_THAT(hstujit_tool({"prewarm", "--help"}).out, HasSubstr("NAME/STEP: only this step"));
  EXPECT_THAT(hstujit_tool({"run", "--help"}).out, testing::Not(HasSubstr("NAME/STEP")));
}

TEST(Arguments, ACommandThatIsMissingIsAskedForWithThoseThereAre) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"cache"}}) {
    const Outcome outcome = hstujit_tool(arguments);
    EXPECT_EQ(outcome.code, kBadRequest);
    EXPECT_EQ(outcome.out, "");
    std::vector<std::string> help = arguments;
    help.emplace_back("--help");
    EXPECT_EQ(outcome.err, hstujit_tool(help).out);
  }
}

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

TEST(Recording, AFileOfOtherLinesIsNamed) {
  const Scratch scratch;
  const Outcome outcome = hstujit_tool({"tune", "--from", scratch.file("misses", "{\"name\": \"old\"}\n")});
  EXPECT_EQ(outcome.code, kBadRequest);
  EXPECT_THAT(outcome.err, HasSubstr("misses:1: no whole line of HSTUJIT_RECORD"));
}

// A path may hold anything, and a sentence about it is one line.
TEST(Paths, ThatHoldLineEndsAreEscaped) {
  const Scratch scratch;
  const std::string path = scratch.file("a\n\tfake: all is well", "{}");
  const std::string config = scratch.config();
  const std::vector<std::pair<std::vector<std::string>, Variables>> runs = {
      {{"tune", "--from", path}, {}},
      {{"bench", "--grid", path}, {}},
      {{"check", "--config", path}, {}},
      {{"cache", "import", path, "--cache-dir", scratch.cache()}, {}},
      {{"cache", "ls", "--cache-dir", scratch.cache()}, {{"HSTUJIT_FROZEN", path}}},
      {{"run", "--backend", "host", "--config", config}, {{"HSTUJIT_HOST_LIBRARY", path}}},
      {{"prewarm", "--arch", "sm_90a", "--config", config, "--cache-dir", scratch.cache()},
       {{"HSTUJIT_COMPILER_LIBRARY", path}}}};
  for (const auto& [arguments, variables] : runs) {
    const Outcome outcome = hstujit_tool(arguments, variables);
    EXPECT_NE(outcome.code, kDone) << testing::PrintToString(arguments);
    EXPECT_EQ((outcome.out + outcome.err).find('\t'), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("\nhstujit: fake"), std::string::npos) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("a\\n\\tfake: all is well"));
  }
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
  {"name": "b", "op": "delta_hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64,
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
                                     ":5:94: ops[2].num_heads (value 4) is not a known field, did "
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
  const Outcome launched = with("run", "layer/layer_norm");
  EXPECT_EQ(launched.code, kBadRequest);
  EXPECT_THAT(launched.err, HasSubstr("\"layer/layer_norm\" is a step, which is launched with all of its op; allowed: "
                                      "\"layer\""));
  EXPECT_EQ(with("run", "layer/norm").err, unknown.err);
  for (const char* command : {"check", "run"}) {
    EXPECT_EQ(with(command, "ranking/foo").err,
              "hstujit: --op \"ranking/foo\" is no step: hstu_attention is no program and has none; allowed: "
              "\"ranking\"\n");
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
        "decode: delta_hstu_attention, 1 key\n  dtype=bf16 heads=1 ", "100, 128", "device: none is known"}) {
    EXPECT_THAT(unknown.out, HasSubstr(part));
  }
  EXPECT_THAT(unknown.out, testing::Not(HasSubstr("from")));

  const Outcome known = check({"--arch", "H200", "--json"});
  EXPECT_EQ(known.code, kDone) << known.err;
  const auto report = known.json();
  EXPECT_EQ(report["valid"], true);
  EXPECT_EQ(report["device"]["arch"], "sm_90a");
  EXPECT_EQ(report["keys"], 5);
  const auto keys = report["instances"][0]["keys"];
  ASSERT_EQ(keys.size(), 4u) << known.out;
  EXPECT_EQ(keys[0]["bucket"], 128);
  EXPECT_EQ(keys[0]["max_seq_len"], nlohmann::json({100, 128}));
  EXPECT_EQ(keys[1]["bucket"], 1024);
  EXPECT_EQ(keys[3]["direction"], "backward");
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
}

TEST(Missing, DriverIsNamedWithWhatWasLookedFor) {
  const Scratch scratch;
  const Variables none = {{"HSTUJIT_CUDA_DRIVER", "/nonexistent/libcuda.so.1"}};
  const std::vector<std::vector<std::string>> commands = {{"prewarm", "--config", scratch.config()},
                                                          {"tune", "--config", scratch.config()},
                                                          {"bench", "--config", scratch.config()},
                                                          {"run", "--config", scratch.config()},
                                                          {"tune", "--devices", "0,1", "--config", scratch.config()}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--cache-dir", scratch.cache()});
    const Outcome outcome = hstujit_tool(command, none);
    EXPECT_EQ(outcome.code, kUnavailable) << testing::PrintToString(command) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/libcuda.so.1")) << command[0];
    EXPECT_EQ(outcome.err.find("--backend host") != std::string::npos, command[0] == "run") << outcome.err;
    EXPECT_EQ(outcome.err.find("(the config's \"device\", or --arch, ") != std::string::npos, command[0] == "prewarm");
    const bool times = command[0] == "tune" || command[0] == "bench";
    EXPECT_EQ(outcome.err.find("hstujit prewarm --arch") != std::string::npos, times) << outcome.err;
  }
}

TEST(Missing, NvrtcIsNamedWithWhatWasLookedFor) {
  const Scratch scratch;
  const Outcome outcome =
      hstujit_tool({"prewarm", "--config", scratch.config(), "--arch", "sm_90a", "--cache-dir", scratch.cache()},
                   {{"HSTUJIT_NVRTC", "/nonexistent/libnvrtc.so"}});
  EXPECT_EQ(outcome.code, kUnavailable) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/libnvrtc.so"));
  EXPECT_EQ(outcome.last_line(), "prewarmed: 1 kernel, 0 compiled, 0 hits, 1 failed");
}

TEST(Missing, CompilerLibraryIsNamedWithWhatWasLookedFor) {
  const Scratch scratch;
  const Outcome outcome =
      hstujit_tool({"prewarm", "--config", scratch.config(), "--arch", "sm_90a", "--cache-dir", scratch.cache()},
                   {{"HSTUJIT_COMPILER_LIBRARY", "/nonexistent/libhstujit_compiler.so"}});
  EXPECT_EQ(outcome.code, kUnavailable) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/libhstujit_compiler.so"));
}

TEST(Missing, HostLibraryIsNamedWithWhatWasLookedFor) {
  const Scratch scratch;
  const Outcome outcome = hstujit_tool({"run", "--config", scratch.config(), "--backend", "host"},
                                       {{"HSTUJIT_HOST_LIBRARY", "/nonexistent/libhstujit_host.so"}});
  EXPECT_EQ(outcome.code, kUnavailable) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/libhstujit_host.so"));
}

TEST(Missing, DoctorReportsAllOfItAndSaysThatNothingRuns) {
  const Variables none = {{"HSTUJIT_CUDA_DRIVER", "/nonexistent/libcuda.so.1"},
                          {"HSTUJIT_NVRTC", "/nonexistent/libnvrtc.so"},
                          {"HSTUJIT_HOST_LIBRARY", "/nonexistent/libhstujit_host.so"}};
  const Outcome outcome = hstujit_tool({"doctor"}, none);
  EXPECT_EQ(outcome.code, kFailed) << outcome.err;
  EXPECT_EQ(outcome.err, "") << "the findings are in the report";
  for (const auto& [name, path] : none) EXPECT_THAT(outcome.out, HasSubstr(path));
  EXPECT_THAT(outcome.out, HasSubstr("error, driver: "));
  EXPECT_THAT(outcome.out, HasSubstr("\n  what to do: install the NVIDIA driver"));
  EXPECT_THAT(outcome.last_line(), HasSubstr("findings keep kernels from running"));
  const Outcome json = hstujit_tool({"doctor", "--json"}, none);
  EXPECT_EQ(json.code, kFailed);
  const auto report = json.json();
  ASSERT_TRUE(report.is_object());
  EXPECT_FALSE(report["healthy"]);
  EXPECT_FALSE(report["driver"]["ok"]);
  EXPECT_FALSE(report["nvrtc"]["ok"]);
  for (const auto& finding : report["findings"]) {
    const std::string problem = finding["problem"];
    const size_t first = outcome.out.find(problem);
    EXPECT_NE(first, std::string::npos) << problem;
    EXPECT_EQ(outcome.out.find(problem, first + 1), std::string::npos) << "once is enough: " << problem;
  }
}

TEST(Environment, AWrongVariableIsABadRequest) {
  const Outcome outcome = hstujit_tool({"cache", "ls"}, {{"HSTUJIT_ON_MISS", "panic"}});
  EXPECT_EQ(outcome.code, kBadRequest);
  EXPECT_THAT(outcome.err, HasSubstr("HSTUJIT_ON_MISS"));
  EXPECT_THAT(outcome.err, HasSubstr("panic"));
}

// What is wrong with it whatever kernel it is for is said once; what does not fit a kernel leaves the config valid.
TEST(Environment, AWrongOverrideIsNoMistakeOfTheConfig) {
  const Scratch scratch;
  const std::string path =
      scratch.file("model.json", R"({"version": 1, "ops": [{"name": "rank", "op": "hstu_attention", "attn_dim": 64,
    "hidden_dim": 64, "max_seq_len": [256, 1024], "directions": ["forward", "backward"]}]})");
  const auto with = [&](const char* command, const char* override) {
    return hstujit_tool({command, "--config", path, "--arch", "sm_90a", "--cache-dir", scratch.cache()},
                        {{"HSTUJIT_OVERRIDE", override}});
  };
  for (const char* command : {"check", "prewarm", "explain"}) {
    const Outcome unknown = with(command, R"({"blockm": 7})");
    EXPECT_EQ(unknown.code, kBadRequest);
    EXPECT_EQ(unknown.out, "");
    EXPECT_THAT(unknown.err, testing::MatchesRegex("hstujit: HSTUJIT_OVERRIDE.blockm \\(value 7\\) is not a known "
                                                   "field, did you mean \"block_m\"\\?\n"));
  }
  EXPECT_THAT(with("check", R"({"stages": 99})").err,
              HasSubstr("HSTUJIT_OVERRIDE.stages is 99; allowed: an integer from 1 to 16"));
  EXPECT_THAT(with("check", R"({"skeleton": "attention/sm90"})").err, HasSubstr("HSTUJIT_OVERRIDE: "));
  const Outcome doctor = hstujit_tool({"doctor"}, {{"HSTUJIT_OVERRIDE", R"({"blockm": 7})"}});
  EXPECT_EQ(doctor.code, kFailed);
  EXPECT_THAT(doctor.out, HasSubstr("error, HSTUJIT_OVERRIDE.blockm (value 7) is not a known field"));

  const Outcome unfit = with("check", R"({"threads_per_row": 8})");
  EXPECT_EQ(unfit.code, kFailed) << unfit.err;
  EXPECT_EQ(unfit.last_line(), "valid: 1 instance, 4 keys; 4 keys without a kernel");
  EXPECT_THAT(unfit.err, HasSubstr("HSTUJIT_OVERRIDE.threads_per_row (value 8) is not a known field"));
  EXPECT_EQ(with("prewarm", R"({"threads_per_row": 8})").last_line(),
            "prewarmed: 0 kernels, 0 compiled, 0 hits, 4 keys without a kernel");
}

// No context can be created with these.
TEST(Environment, DoctorWorksWithVariablesThatEndEverythingElse) {
  const Scratch scratch;
  const Variables variables = {{"HSTUJIT_ON_MISS", "panic"},
                               {"HSTUJIT_LOG", "loudly"},
                               {"HSTUJIT_FROZEN", "/nonexistent/choices.json"},
                               {"HSTUJIT_CACHEDIR", "/misspelt"},
                               {"HSTUJIT_NVRTC", "/not \xff UTF-8"}};
  const Outcome outcome = hstujit_tool({"doctor", "--cache-dir", scratch.cache()}, variables);
  EXPECT_EQ(outcome.code, kFailed);
  for (const char* sentence :
       {"error, HSTUJIT_ON_MISS is \"panic\"; allowed: heuristic, tune, fail", "error, HSTUJIT_LOG contains \"loudly\"",
        "error, HSTUJIT_FROZEN: ", "\"/nonexistent/choices.json\"",
        "warning, HSTUJIT_CACHEDIR is set and is no variable", "did you mean HSTUJIT_CACHE_DIR?"}) {
    EXPECT_THAT(outcome.out, HasSubstr(sentence));
  }
}

TEST(Explain, NamesTheNearestEntryAndWhatDiffers) {
  const Scratch scratch;
  const std::vector<std::string> explain = {"explain", "--config",    scratch.config(), "--arch",
                                            "sm_90a",  "--cache-dir", scratch.cache()};
  std::vector<std::string> as_json = explain;
  as_json.emplace_back("--json");
  const auto fields = hstujit_tool(as_json).json()["instances"][0]["key_fields"];
  const ArtifactKey key = {.generator = "another build",
                           .spec = fields["spec"],
                           .direction = fields["direction"],
                           .config = fields["config"],
                           .options = {"-lineinfo"},
                           .arch = fields["arch"]};
  ArtifactStore store(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  ASSERT_TRUE(store.put(key, cubin_of("of another build"), {}));
  // Lines are as wide as tables are: this one is broken where a path is long.
  const std::string text = std::regex_replace(hstujit_tool(explain).out, std::regex("\\s+"), " ");
  EXPECT_THAT(text, HasSubstr(artifact_digest(key)->substr(0, 12) + " in " + scratch.cache() +
                              " differs in generator (another build, not " +
                              fields["generator"].get<std::string>().substr(0, 12) + ") and options (-lineinfo, not "));
}

TEST(Cache, PathFollowsOptionThenEnvironment) {
  EXPECT_EQ(hstujit_tool({"cache", "path", "--cache-dir", "/a/b"}).out, "/a/b\n");
  EXPECT_EQ(hstujit_tool({"cache", "path"}, {{"HSTUJIT_CACHE_DIR", "/c"}}).out, "/c\n");
  EXPECT_EQ(hstujit_tool({"cache", "path"}, {{"XDG_CACHE_HOME", "/d"}}).out, "/d/hstujit\n");
  const Outcome none = hstujit_tool({"cache", "path"}, {{"XDG_CACHE_HOME", ""}, {"HOME", ""}});
  EXPECT_EQ(none.code, kBadRequest);
  EXPECT_THAT(none.err, HasSubstr("HSTUJIT_CACHE_DIR"));
}

TEST(Cache, VerifyNamesAFileWhoseNameIsNoUtf8) {
  const Scratch scratch;
  const std::filesystem::path folder = std::filesystem::path(scratch.cache()) / "v1" / "sm_90a" / "ab";
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(write_file_atomically(folder / "no \xff text", "foreign").ok());
  const Outcome outcome = hstujit_tool({"cache", "verify", "--cache-dir", scratch.cache()});
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.out, HasSubstr("it is not a file of the cache"));
  EXPECT_EQ(outcome.err.find("bug"), std::string::npos) << outcome.err;
}

TEST(Cache, AnEmptyOneIsFine) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch.cache());
  EXPECT_EQ(hstujit_tool({"cache", "verify", "--cache-dir", scratch.cache()}).code, kDone);
  EXPECT_EQ(hstujit_tool({"cache", "ls", "--cache-dir", scratch.cache()}).out,
            "0 kernels, 0 B; 0 tuning records, 0 choices\n");
}

TEST(Cache, ListFitsAPageAndTellsWhereEntriesAreFrom) {
  const Scratch scratch;
  const std::string layer = (scratch.path() / "layer").string();
  ArtifactInfo info = sample_info();
  info.kernel = std::string(120, 'k');
  ArtifactStore store(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  ASSERT_TRUE(store.put(sample_key(), cubin_of("mine"), info));
  ArtifactStore others(CacheDirectories{.user = layer, .read_only = {}}, Log());
  ASSERT_TRUE(others.put(sample_key(sample_config(64)), cubin_of("of others"), info));
  TuningDatabase records(CacheDirectories{.user = layer, .read_only = {}}, Log());
  ASSERT_TRUE(records.add(sample_record({{sample_config(64), kWorkload, "s", 10, 1}})).ok());
  const std::vector<std::string> list = {"cache", "ls", "--cache-dir", scratch.cache()};
  const Variables variables = {{"HSTUJIT_CACHE_PATH", layer}};
  const Outcome usual = hstujit_tool(list, variables);
  ASSERT_EQ(usual.code, kDone) << usual.err;
  for (const std::string& line : split(usual.out, '\n')) EXPECT_LE(line.size(), 102u) << line;  // of "…" one column
  EXPECT_THAT(usual.out, HasSubstr("  user\n"));
  EXPECT_THAT(usual.out, HasSubstr("  read_only\n"));
  std::vector<std::string> wide = list;
  wide.emplace_back("--wide");
  const Outcome all = hstujit_tool(wide, variables);
  EXPECT_THAT(all.out, HasSubstr(info.kernel));
  EXPECT_THAT(all.out, HasSubstr("  " + layer + "\n"));
  std::vector<std::string> json = list;
  json.emplace_back("--json");
  const auto report = hstujit_tool(json, variables).json();
  EXPECT_EQ(report["kernels"][0]["role"], "user");
  EXPECT_EQ(report["kernels"][1]["role"], "read_only");
  EXPECT_EQ(report["tuning"][0]["role"], "read_only");
}

TEST(Cache, TheTablesEndWithOneLineOfTotals) {
  const Scratch scratch;
  ArtifactStore store(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  const std::vector<std::string> list = {"cache", "ls", "--cache-dir", scratch.cache()};
  const Variables no_records = {{"HSTUJIT_CACHE_PATH", ""}};
  EXPECT_EQ(hstujit_tool(list, no_records).out.find('\\'), std::string::npos);
  ASSERT_TRUE(store.put(sample_key(), cubin_of("mine"), sample_info()));
  const Outcome outcome = hstujit_tool(list, no_records);
  EXPECT_EQ(outcome.out.find('\\'), std::string::npos) << outcome.out;
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\n\n1 kernel, [^\n]*; [0-9]+ tuning records[^\n]*, 0 choices\n$"));
}

TEST(Cache, ExportKeepsAGoodBundle) {
  const Scratch scratch;
  const std::string bundle = scratch.file("bundle", "a good one");
  const auto exported = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"cache", "export", bundle, "--cache-dir", scratch.cache()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hstujit_tool(arguments);
  };
  const Outcome unknown = exported({"--op", "hstu_atention"});
  EXPECT_EQ(unknown.code, kBadRequest);
  EXPECT_THAT(unknown.err,
              HasSubstr("hstujit: --op is \"hstu_atention\", did you mean \"hstu_attention\"?; allowed: "));
  for (const auto& more : {std::vector<std::string>{}, {"--op", "hstu_attention"}}) {
    const Outcome nothing = exported(more);
    EXPECT_EQ(nothing.code, kBadRequest);
    EXPECT_THAT(nothing.err, HasSubstr("the cache has no kernel, no tuning record and no choice"));
  }
  EXPECT_EQ(*whole_file(bundle), "a good one");
}

TEST(Outputs, WhatIsNoRegularFileStays) {
  const Scratch scratch;
  const std::string pipe = (scratch.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string config = scratch.config();
  const std::vector<std::vector<std::string>> commands = {
      {"freeze", "--config", config, "--arch", "sm_90a", "-o", pipe},
      {"bench", "--config", config, "--out", pipe},
      {"cache", "export", pipe}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--cache-dir", scratch.cache()});
    // Standard output is a pipe here.
    std::vector<std::string> piped = {"/bin/sh", "-c", R"(("$0" "$@"; echo "exit $?" >&2) | cat)",
                                      HSTUJIT_BINARY_DIR "/bin/hstujit"};
    piped.insert(piped.end(), command.begin(), command.end());
    const Outcome refused = run_program(piped);
    EXPECT_THAT(refused.err, HasSubstr("it is a pipe, no regular file")) << testing::PrintToString(command);
    EXPECT_THAT(refused.err, HasSubstr("exit 1")) << testing::PrintToString(command);
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

// Where a file is, too, which a new one would take the place of.
TEST(Outputs, WhatAProcessHasOpenIsNoPlaceForAFile) {
  const Scratch scratch;
  const std::string file = (scratch.path() / "out").string(), link = (scratch.path() / "link").string();
  std::filesystem::create_symlink("/dev/stdout", link);
  for (const std::string& output :
       {std::string("/dev/stdout"), std::string("/proc/self/fd/1"), std::string("/dev/fd/1"), link}) {
    for (const char* to : {"", " | cat"}) {
      const std::string script = std::string(R"((echo before; "$0" freeze --config "$1" --arch sm_90a -o "$2"; )") +
                                 R"(echo "exit $?" >&2; echo after) )" + (*to == '\0' ? R"(>"$3")" : to);
      const Outcome refused =
          run_program({"/bin/sh", "-c", script, HSTUJIT_BINARY_DIR "/bin/hstujit", scratch.config(), output, file});
      EXPECT_THAT(refused.err, HasSubstr("cannot write \"" + output + "\": it stands for what a process has open"));
      EXPECT_THAT(refused.err, HasSubstr("exit 1"));
      if (*to == '\0') {
        EXPECT_EQ(*whole_file(file), "before\nafter\n");
      }
    }
  }
}

TEST(Cache, ABundleIsExportedImportedAndALayer) {
  const Scratch scratch;
  const std::string bundle = (scratch.path() / "bundle.tar.zst").string();
  const std::string again = (scratch.path() / "again.tar.zst").string();
  const std::string records = (scratch.path() / "records").string();
  TuningDatabase origin(CacheDirectories{.user = records, .read_only = {}}, Log());
  ASSERT_TRUE(origin.add(sample_record({{sample_config(64), kWorkload, "s", 10, 1}})).ok());
  const Outcome exported =
      hstujit_tool({"cache", "export", bundle, "--cache-dir", scratch.cache()}, {{"HSTUJIT_CACHE_PATH", records}});
  ASSERT_EQ(exported.code, kDone) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("exported: 0 kernels, 1 tuning record, 0 choices; "));
  const Outcome imported = hstujit_tool({"cache", "import", bundle, "--cache-dir", scratch.cache(), "--json"});
  ASSERT_EQ(imported.code, kDone) << imported.err;
  EXPECT_EQ(imported.json()["new_tuning"], 1);
  ASSERT_EQ(hstujit_tool({"cache", "export", again, "--cache-dir", scratch.cache()}).code, kDone);
  EXPECT_EQ(*whole_file(again), *whole_file(bundle)) << "the same entries give the same bytes";

  const std::string empty = (scratch.path() / "empty").string();
  const Variables layer = {{"HSTUJIT_CACHE_PATH", bundle}};
  const auto listed = hstujit_tool({"cache", "ls", "--cache-dir", empty, "--json"}, layer).json();
  EXPECT_EQ(listed["tuning"].size(), 1u);
  EXPECT_EQ(hstujit_tool({"cache", "verify", "--cache-dir", empty}, layer).code, kDone);

  std::filesystem::resize_file(bundle, std::filesystem::file_size(bundle) / 2);
  const Outcome refused = hstujit_tool({"cache", "import", bundle, "--cache-dir", empty});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr(bundle + " is no whole bundle"));
  EXPECT_FALSE(std::filesystem::exists(empty));
  EXPECT_EQ(hstujit_tool({"cache", "verify", "--cache-dir", empty}, layer).code, kFailed);
}

}  // namespace
}  // namespace hstujit
