// Answers to wrong arguments: one sentence, and the exit code that docs/cli.md promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "tests/paths.h"
#include "tests/tools/exit_codes.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Arguments, HelpAndVersionAreNoMistakes) {
  const Outcome help = hstujit_tool({"--help"});
  EXPECT_EQ(help.code, kDone);
  for (const char* command : {"check", "prewarm", "tune", "run", "bench", "emit", "freeze", "explain", "report",
                              "doctor", "cache", "completion", "manual"}) {
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

TEST(Arguments, ThePageSaysWhichCommandsHaveWideTables) {
  std::ifstream page(source_path("/docs/cli.md"));
  std::string row;
  while (std::getline(page, row) && !row.starts_with("| `--wide` |")) continue;
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"check"},
                                                                                       {"prewarm"},
                                                                                       {"tune"},
                                                                                       {"run"},
                                                                                       {"bench"},
                                                                                       {"emit"},
                                                                                       {"freeze"},
                                                                                       {"explain"},
                                                                                       {"report"},
                                                                                       {"doctor"},
                                                                                       {"cache", "ls"},
                                                                                       {"cache", "verify"},
                                                                                       {"cache", "prune"},
                                                                                       {"cache", "export"},
                                                                                       {"cache", "import"}}) {
    std::vector<std::string> help = command;
    help.emplace_back("--help");
    const bool wide = hstujit_tool(help).out.find("\n  --wide ") != std::string::npos;
    const std::string name = "`" + command.front() + (command.size() > 1 ? " " + command.back() : "") + "`";
    EXPECT_EQ(row.find(name) != std::string::npos, wide) << name;
  }
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string sentence;  // part of standard error
};

TEST(Arguments, MistakesAreNamedAndExitWith2) {
  const std::vector<Mistake> mistakes = {
      {{"polish"},
       "unknown command \"polish\"; commands: check, prewarm, tune, run, bench, emit, freeze, explain, report, "
       "doctor, cache"},
      {{"prewram"}, "unknown command \"prewram\", did you mean \"prewarm\"?; commands: check, prewarm, "},
      {{"doctor", "--jsn"}, "unknown option --jsn, did you mean \"--json\"?; see hstujit doctor --help"},
      {{"cache", "prune", "--nvrct=12.8"}, "unknown option --nvrct, did you mean \"--nvrtc\"?"},
      {{"prewarm"}, "--config is required; see hstujit prewarm --help"},
      {{"prewarm", "--config"}, "hstujit: --config needs a FILE; see hstujit prewarm --help"},
      {{"prewarm", "--config", "a", "-j"}, "hstujit: -j,--jobs needs an N; see"},
      {{"prewarm", "--config", "--arch", "a"}, "hstujit: --config needs a FILE; see"},
      {{"prewarm", "--config", "--json"}, "hstujit: --config needs a FILE; see"},
      {{"prewarm", "--config", "a", "--arch", "-j", "2"}, "hstujit: --arch needs an ARCH; see"},
      {{"run", "--config", "a", "--backend"}, "hstujit: --backend needs one of cuda, host; see"},
      {{"cache", "prune", "--max-bytes"}, "hstujit: --max-bytes needs a SIZE; see"},
      {{"freeze", "--config", "a"}, "hstujit: -o,--output is required; see hstujit freeze --help"},
      {{"emit", "--config", "a", "-o"}, "hstujit: -o,--output needs a DIR; see"},
      {{"cache", "export"}, "hstujit: FILE is required; see hstujit cache export --help"},
      {{"completion"}, "hstujit: SHELL is required: one of bash, fish, zsh; see hstujit completion --help"},
      {{"prewarm", "--config", "a", "--speed", "9"}, "unknown option --speed; see hstujit prewarm --help"},
      {{"prewarm", "--config", "a", "--jobs", "0"}, "--jobs"},
      {{"prewarm", "--config", "a", "--jobs", "many"}, "many"},
      {{"run", "--config", "a", "--backend", "tpu"}, "--backend: \"tpu\" is not allowed; allowed: cuda, host"},
      {{"completion", "fihs"}, "SHELL: \"fihs\" is not allowed, did you mean \"fish\"?; allowed: bash, fish, zsh"},
      {{"check", "-c", "a"}, "unknown option -c; see"},
      {{"check", "--config", "a", "--js"}, "unknown option --js, did you mean \"--json\"?"},
      {{"check", "--config", "a", "--config", "b"}, "--config is given more than once"},
      {{"--json", "check", "--config", "a"}, "--json comes before the command; its options come after it"},
      {{"check", "--config", "/tmp"}, "\"/tmp\""},
      {{"run", "--config", "a", "--backend", "host", "--device", "3"}, "--device is 3; --backend host runs on no CUDA"},
      {{"run", "--config", "a", "--max-rows", "-3"},
       "--max-rows: \"-3\" is not allowed; it must be a whole number from 1 to 268435456"},
      {{"run", "--config", "a", "--seed", "-1"},
       "--seed: \"-1\" is not allowed; it must be a whole number from 0 to 1844674407370"},
      {{"run", "--config", "a", "--seed", "18446744073709551616"}, "\"18446744073709551616\" is not allowed"},
      {{"bench", "--config", "a", "--repeats", "0x10"}, "--repeats: \"0x10\" is not allowed"},
      {{"bench", "--config", "a", "--repeats", "1000001"}, "it must be a whole number from 1 to 1000000"},
      {{"run", "--config", "a", "--repeat", "1000001"}, "it must be a whole number from 1 to 1000000"},
      {{"run", "--config", "a", "--repeats", "1000001"}, "it must be a whole number from 1 to 1000000"},
      {{"bench", "--config", "a", "--repeat", "1000001"}, "it must be a whole number from 1 to 1000000"},
      {{"prewarm", "--config", "a", "--jobs", "+1"}, "--jobs: \"+1\" is not allowed"},
      {{"prewarm", "--config", "a", "--jobs", " 1"}, "--jobs: \" 1\" is not allowed"},
      {{"prewarm", "--config", "a", "--jobs", ""}, "--jobs: \"\" is not allowed"},
      {{"prewarm", "--config", "a", "--wide=3"}, "--wide takes no value; see"},
      {{"prewarm", "--config", "a", "--cache-dir=", "--check"}, "--cache-dir: is empty; leave it out"},
      {{"prewam", "--config", "a"}, "unknown command \"prewam\", did you mean \"prewarm\"?"},
      {{"prewam", "--help"}, "unknown command \"prewam\", did you mean \"prewarm\"?"},
      {{"cache", "lss", "--json"}, "unknown command \"lss\", did you mean \"ls\"?"},
      {{"prewarm", "--config", ""}, "--config: is empty; it must have a value"},
      {{"prewarm", "--config", "a", "--shard", "9/8"},
       "hstujit: --shard: \"9/8\" is not allowed; it must be INDEX/COUNT"},
      {{"tune"}, "--config or --from"},
      {{"tune", "--config", "a", "--from", "b"}, "--from"},
      {{"tune", "--config", "a", "--budget", "soon"},
       "\"soon\" is no duration; allowed: a number above 0 with s, m, min or h"},
      {{"tune", "--config", "a", "--devices", "0,x"}, "--devices: \"0,x\" is not allowed; it must be whole numbers"},
      {{"tune", "--config", "a", "--devices", "0,,1"}, "--devices: \"0,,1\" is not allowed"},
      {{"tune", "--config", "a", "--devices", "0,1,0"}, "--devices: 0,1,0 names a GPU twice"},
      {{"bench"}, "--config or --grid"},
      {{"bench", "--config", "a", "--grid", "b"}, "--grid"},
      {{"cache", "expert"}, "unknown command \"expert\", did you mean \"export\"?; commands: ls, "},
      {{"cache", "launder"}, "unknown command \"launder\"; commands: ls, verify, prune, export, import, path"},
      {{"doctor", "now"}, "unexpected argument \"now\"; see hstujit doctor --help"},
      {{"cache", "prune"}, "one of --nvrtc and --max-bytes, and no more, is required"},
      {{"cache", "prune", "--nvrtc", "12.8", "--max-bytes", "1"},
       "one of --nvrtc and --max-bytes, and no more, is required"},
      {{"cache", "prune", "--nvrtc", ""}, "--nvrtc: is empty"},
      {{"cache", "prune", "--nvrtc", "x"}, "hstujit: --nvrtc is \"x\"; allowed: a version of NVRTC, two "},
      {{"cache", "list"}, "unknown command \"list\", did you mean \"ls\"?; commands: ls, "},
      {{"help"}, "unknown command \"help\", did you mean \"--help\"?; commands: check, "},
      {{"version"}, "unknown command \"version\", did you mean \"--version\"?"},
      {{"prune"}, "unknown command \"prune\", did you mean \"cache prune\"?"},
      {{"verify"}, "did you mean \"cache verify\"?"},
      {{"ls"}, "did you mean \"cache ls\"?"},
      {{"list"}, "did you mean \"cache ls\"?"},
      {{"export"}, "did you mean \"cache export\"?"},
      {{"import"}, "did you mean \"cache import\"?"},
      {{"check", "--gpu", "0"}, "unknown option --gpu, did you mean \"--arch\"?"},
      {{"run", "--gpu", "0"}, "unknown option --gpu, did you mean \"--device\"?"},
      {{"run", "--cpu"}, "unknown option --cpu, did you mean \"--backend host\"?"},
      {{"run", "--host"}, "unknown option --host, did you mean \"--backend host\"?"},
      {{"run", "--verify"}, "unknown option --verify, did you mean \"--check\"?"},
      {{"run", "--iters", "3"}, "unknown option --iters, did you mean \"--repeats\"?"},
      {{"tune", "--time", "3"}, "unknown option --time, did you mean \"--budget\"?"},
      {{"run", "--time", "3"}, "unknown option --time; see hstujit run --help"},
      {{"check", "--file", "a"}, "unknown option --file, did you mean \"--config\"?"},
      {{"emit", "--out-dir", "a"}, "unknown option --out-dir, did you mean \"--output\"?"},
      {{"prewarm", "--device", "0"}, "unknown option --device, did you mean \"--arch\"?"},
      {{"prewarm", "--target", "H200"}, "unknown option --target, did you mean \"--arch\"?"},
      {{"check", "model.json"}, "unexpected argument \"model.json\"; use --config FILE"},
      {{"--config", "model.json", "check"}, "--config model.json comes before the command; its options come after"},
      {{"check", "--", "--config", "model.json"}, "--config model.json comes after --, where options end; see"},
      {{"emit", "--dir", "a"}, "unknown option --dir, did you mean \"--output\"?"},
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
  const std::string run = std::regex_replace(hstujit_tool({"run", "--help"}).out, std::regex("\\s+"), " ");
  EXPECT_THAT(run, HasSubstr(" --max-rows N at most this many rows of each batch; default: all; 1 to 268435456 "));
  EXPECT_THAT(run, HasSubstr(" deterministic kernels are asked for; 1 to 1000000; default: 1 "));
  EXPECT_THAT(hstujit_tool({"cache", "export", "--help"}).out, HasSubstr("\n  FILE REQUIRED  "));
  EXPECT_THAT(run, HasSubstr(" --backend cuda|host where it runs; default: cuda "));
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
      {{"doctor"}, {{"HSTUJIT_OPERATIONS_LIBRARY", path}}},
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

}  // namespace
}  // namespace hstujit
