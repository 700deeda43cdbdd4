// Output of every command: nothing of a hostile text reaches a terminal as it is, and no state of the standard streams
// ends the program by a signal or makes a loss look like success.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "autotune_cache/store/artifact_store.h"
#include "autotune_cache/store/tuning_database.h"
#include "tests/autotune_cache/samples.h"
#include "tests/paths.h"
#include "tests/support/whole_file.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::HasSubstr;
using testing::Not;

using Arguments = std::vector<std::string>;

// Every command, with what it needs; "@" is the folder of the test. None has a GPU or NVRTC.
const std::vector<Arguments> kCommands = {
    {"check", "--config", "@/config.json", "--arch", "sm_90a", "--cache-dir", "@/cache"},
    {"prewarm", "--config", "@/config.json", "--arch", "sm_90a", "--cache-dir", "@/cache"},
    {"tune", "--config", "@/config.json", "--cache-dir", "@/cache"},
    {"run", "--config", "@/config.json", "--cache-dir", "@/cache"},
    {"bench", "--config", "@/config.json", "--cache-dir", "@/cache"},
    {"emit", "--config", "@/config.json", "--arch", "sm_90a", "--cache-dir", "@/cache", "-o", "@/emitted"},
    {"freeze", "--config", "@/config.json", "--arch", "sm_90a", "--cache-dir", "@/cache", "-o", "@/frozen.json"},
    {"explain", "--config", "@/config.json", "--arch", "sm_90a", "--cache-dir", "@/cache"},
    {"report", "--config", "@/config.json", "--arch", "sm_90a", "--cache-dir", "@/cache", "-o", "@/report.html"},
    {"doctor", "--cache-dir", "@/cache"},
    {"completion", "bash"},
    {"manual"},
    {"cache", "ls", "--cache-dir", "@/cache"},
    {"cache", "verify", "--cache-dir", "@/cache"},
    {"cache", "prune", "--max-bytes", "1G", "--cache-dir", "@/cache"},
    {"cache", "export", "@/bundle", "--cache-dir", "@/cache"},
    {"cache", "import", "@/bundle", "--cache-dir", "@/cache"},
    {"cache", "path", "--cache-dir", "@/cache"},
};

Variables without_gpu() {
  return {{"HSTUJIT_CUDA_DRIVER", "/nonexistent/libcuda.so.1"},
          {"HSTUJIT_NVRTC", "/nonexistent/libnvrtc.so"},
          {"HSTUJIT_LOG", "all"}};
}

Arguments in_folder(Arguments arguments, const std::string& folder) {
  for (std::string& argument : arguments) {
    if (argument.starts_with('@')) argument.replace(0, 1, folder);
  }
  return arguments;
}

std::string name_of(const Arguments& arguments) {
  return arguments[0] == "cache" ? arguments[0] + "_" + arguments[1] : arguments[0];
}

// The commands of the last section of a --help.
std::set<std::string> listed(const std::string& help) {
  std::set<std::string> names;
  std::istringstream lines(help.substr(help.find("Subcommands:")));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name;
    if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ' && words >> name) names.insert(name);
  }
  return names;
}

TEST(Commands, AreAllInTheTableOfThisTest) {
  std::set<std::string> top;
  std::set<std::string> of_cache;
  for (const Arguments& command : kCommands) {
    top.insert(command[0]);
    if (command[0] == "cache") of_cache.insert(command[1]);
  }
  EXPECT_EQ(listed(hstujit_tool({"--help"}).out), top);
  EXPECT_EQ(listed(hstujit_tool({"cache", "--help"}).out), of_cache);
}

class Streams : public testing::TestWithParam<Arguments> {
 protected:
  std::string folder() const { return scratch_.path().string(); }

  Scratch scratch_;
  std::string config_ = scratch_.config();
};

// Output that passes by tools/hstujit/output.h is neither escaped nor missed when it is lost.
TEST(Streams, AreWrittenInOnePlace) {
  size_t files = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(source_path("/tools/hstujit"))) {
    if (!file.is_regular_file() || file.path().stem() == "output") continue;
    ++files;
    const std::string text = *whole_file(file.path());
    for (const char* way : {"fmt::print(", "std::cout", "std::cerr", "printf(", "fputs(", "fwrite(", "puts("}) {
      EXPECT_THAT(text, Not(HasSubstr(way))) << file.path();
    }
  }
  EXPECT_GT(files, 20u);
}

// The exit code of a command whose streams a shell has redirected, 128 + the signal that ended it.
int exit_code(const Arguments& arguments, const std::string& redirections) {
  Arguments command = {"/bin/sh", "-c", "exec \"$0\" \"$@\" " + redirections, binary_path("/bin/hstujit")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_program(command, without_gpu()).code;
}

TEST_P(Streams, ThatTakeNothingAreAFailureAndNoSignal) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  const Arguments arguments = in_folder(GetParam(), folder());
  ASSERT_TRUE(scratch_.file("bundle", "no bundle").ends_with("bundle"));
  const Outcome usual = hstujit_tool(arguments, without_gpu());
  ASSERT_LT(usual.code, 128);
  // A pipe without a reader: both ends are open here, and the reader is closed before the program begins.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const std::string broken = std::to_string(ends[1]);
  for (const std::string& out : {std::string(">&-"), std::string(">/dev/full"), ">&" + broken}) {
    const int code = exit_code(arguments, out);
    EXPECT_EQ(code, usual.out.empty() || usual.code != 0 ? usual.code : 1) << out;
  }
  for (const std::string& both :
       {std::string("<&- >&- 2>&-"), std::string(">/dev/full 2>/dev/full"), ">&" + broken + " 2>&" + broken}) {
    const int code = exit_code(arguments, both);
    EXPECT_EQ(code, usual.code != 0 ? usual.code : 1) << both;
  }
  for (const std::string& err : {std::string("2>&-"), std::string("2>/dev/full"), "2>&" + broken}) {
    const int code = exit_code(arguments, err);
    if (usual.code != 0) {
      EXPECT_EQ(code, usual.code) << err;
    } else {
      EXPECT_LE(code, 1) << err << " (0 where nothing but the log is lost)";
    }
  }
  EXPECT_EQ(exit_code(arguments, "<&-"), hstujit_tool(arguments, without_gpu()).code) << "nothing is read from it";
  close(ends[1]);
}

INSTANTIATE_TEST_SUITE_P(Every, Streams, testing::ValuesIn(kCommands),
                         [](const auto& info) { return name_of(info.param); });

TEST(Streams, FilesTakeNoNumberOfAClosedOne) {
  const Scratch scratch;
  const Arguments arguments = {"freeze",       "--config", scratch.config(),       "--arch",
                               "sm_90a",       "-o",       scratch.path() / "one", "--cache-dir",
                               scratch.cache()};
  ASSERT_EQ(hstujit_tool(arguments, without_gpu()).code, 0);
  Arguments again = arguments;
  again[6] = scratch.path() / "two";
  EXPECT_EQ(exit_code(again, "<&- >&- 2>&-"), 1);
  EXPECT_EQ(*whole_file(again[6]), *whole_file(arguments[6])) << "nothing that was printed is in it";
}

TEST(Streams, AWorkerWithoutThemEndsWith1) {
  const std::string worker = binary_path("/libexec/hstujit/hstujit-worker");
  ASSERT_EQ(access(worker.c_str(), X_OK), 0);
  for (const char* redirections : {"2>&-", "2>/dev/full", "<&- >&- 2>&-", "2>/dev/null"}) {
    const Arguments command = {"/bin/sh", "-c", std::string("exec \"$0\" ") + redirections + " 3>&-", worker};
    EXPECT_EQ(run_program(command).code, 1) << redirections;
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  const std::string broken = "exec \"$0\" 2>&" + std::to_string(ends[1]) + " 3>&-";
  EXPECT_EQ(run_program({"/bin/sh", "-c", broken, worker}).code, 1);
  close(ends[1]);
}

// A title of the terminal, a colour, C1 as a byte and as UTF-8, DEL, an override of direction, no UTF-8, another line.
const std::string kHostile = "\x1b]0;a\x07\x1b[31mb \x9b c \xc2\x9b d\x7f \xe2\x80\xae \xff\r\nhstujit: EVIL";
// The same in a place that must be UTF-8.
const std::string kHostileText = "\x1b]0;a\x07\x1b[31mb \xc2\x9b d\x7f \xe2\x80\xae\r\nhstujit: EVIL";

void expect_clean(const Outcome& outcome, const std::string& what) {
  for (const std::string& text : {outcome.out, outcome.err}) {
    for (const char* part :
         {"\x1b", "\x07", "\x7f", "\r", "\xc2\x9b", "\xe2\x80\xae", "\xff", " \x9b ", "\nhstujit: EVIL"}) {
      EXPECT_THAT(text, Not(HasSubstr(part))) << what;
    }
  }
  EXPECT_LT(outcome.code, 128) << what;
  EXPECT_THAT(outcome.err, Not(HasSubstr("a bug in hstujit"))) << what;
}

TEST(Hostile, OptionsAreEscapedByEveryCommand) {
  const Scratch scratch;
  const std::string config = scratch.config();
  std::vector<Arguments> lines = {{kHostile}, {"--" + kHostile}, {"cache", kHostile}, {"completion", kHostile}};
  for (const Arguments& command : kCommands) {
    const Arguments usual = in_folder(command, scratch.path().string());
    for (const std::string& more : {kHostile, "--" + kHostile, "--cache-dir=" + kHostile + "/x"}) {
      lines.push_back(usual);
      lines.back().push_back(more);
    }
    for (size_t i = command[0] == "cache" ? 2 : 1; i < usual.size(); ++i) {
      if (usual[i].starts_with('-')) continue;
      lines.push_back(usual);
      lines.back()[i] = (scratch.path() / kHostile).string();
    }
  }
  for (const char* option : {"--op", "--arch", "--jobs", "--shard", "--budget", "--device", "--devices", "--backend",
                             "--seed", "--max-rows", "--nvrtc", "--max-bytes", "--grid", "--from"}) {
    for (const char* command : {"prewarm", "tune", "run", "bench"}) {
      lines.push_back({command, "--config", config, option, kHostile});
    }
    lines.push_back({"cache", "prune", option, kHostile});
  }
  Variables variables = without_gpu();
  variables["HSTUJIT_CACHE_DIR"] = scratch.cache();
  for (const Arguments& line : lines) expect_clean(hstujit_tool(line, variables), testing::PrintToString(line));
}

TEST(Hostile, VariablesAreEscaped) {
  const Scratch scratch;
  const std::string config = scratch.config();
  for (const char* name : {"HSTUJIT_CACHE_DIR", "HSTUJIT_CACHE_PATH", "HSTUJIT_ON_MISS", "HSTUJIT_LOG", "HSTUJIT_NVRTC",
                           "HSTUJIT_CUDA_DRIVER", "HSTUJIT_COMPILER_LIBRARY", "HSTUJIT_HOST_LIBRARY",
                           "HSTUJIT_OPERATIONS_LIBRARY", "HSTUJIT_BUNDLE_LIBRARY", "HSTUJIT_FROZEN", "HSTUJIT_WORKER",
                           "HSTUJIT_REMOTE_CACHE", "HSTUJIT_NO_SUCH", "HOME", "XDG_CACHE_HOME"}) {
    Variables variables = {{"HSTUJIT_CUDA_DRIVER", "/nonexistent/libcuda.so.1"}, {"HSTUJIT_LOG", "all"}};
    variables[name] = kHostile;
    for (const Arguments& line : {Arguments{"doctor"},
                                  {"doctor", "--json"},
                                  {"cache", "ls"},
                                  {"cache", "path"},
                                  {"run", "--config", config},
                                  {"explain", "--config", config, "--arch", "sm_90a"}}) {
      const Outcome outcome = hstujit_tool(line, variables);
      expect_clean(outcome, std::string(name) + testing::PrintToString(line));
      // The report is that library's.
      if (line.back() == "--json" && name != std::string_view("HSTUJIT_OPERATIONS_LIBRARY")) {
        EXPECT_TRUE(outcome.json().is_object()) << name;
      }
    }
  }
}

TEST(Hostile, NamesOfConfigsAreEscaped) {
  const Scratch scratch;
  const std::string name = nlohmann::json(kHostileText).dump();
  const std::string op = R"({"name": )" + name + R"(, "op": "hstu_attention", "heads": 2, "attn_dim": 64,
                           "hidden_dim": 64, "max_seq_len": 256, "lengths": [20]})";
  const std::vector<std::string> configs = {
      R"({"version": 1, "ops": [)" + op + "]}", R"({"version": 1, )" + name + R"(: 1, "ops": []})",
      R"({"version": 1, "device": )" + name + R"(, "ops": [)" + op + "]}", "{\"version\": 1, \"ops\": [" + kHostile};
  for (size_t i = 0; i < configs.size(); ++i) {
    const std::string path = scratch.file("config.json", configs[i]);
    for (const Arguments& command : kCommands) {
      if (command.size() < 2 || command[1] != "--config") continue;
      Arguments line = in_folder(command, scratch.path().string());
      expect_clean(hstujit_tool(line, without_gpu()), std::to_string(i) + testing::PrintToString(line));
      if (command[0] == "freeze" || command[0] == "report") continue;
      line.emplace_back("--json");
      const Outcome json = hstujit_tool(line, without_gpu());
      expect_clean(json, std::to_string(i) + testing::PrintToString(line));
      if (!json.out.empty()) {
        EXPECT_TRUE(json.json().is_object()) << json.out;
      }
    }
  }
}

TEST(Hostile, WhatACacheHoldsIsEscaped) {
  const Scratch scratch;
  ArtifactStore store(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  ArtifactInfo info = sample_info();
  info.kernel = info.nvrtc = info.library = kHostileText;
  ASSERT_TRUE(store.put(sample_key(nlohmann::json{{kHostileText, kHostileText}}.dump()), cubin_of("x"), info));
  TuningDatabase records(CacheDirectories{.user = scratch.cache(), .read_only = {}}, Log());
  TuningKey key = sample_tuning_key();
  key.device = kHostileText;
  ASSERT_TRUE(records.add(sample_record({{sample_config(64), kWorkload, kHostileText, 10, 1}}, key)).ok());
  ASSERT_TRUE(write_file_atomically(std::filesystem::path(scratch.cache()) / "v1" / "sm_90a" / kHostile, "x").ok());
  const std::string cache = scratch.cache();
  for (const Arguments& line : {Arguments{"cache", "ls"},
                                {"cache", "ls", "--wide"},
                                {"cache", "verify"},
                                {"doctor"},
                                {"explain", "--config", scratch.config(), "--arch", "sm_90a"}}) {
    for (const bool json : {false, true}) {
      Arguments whole = line;
      whole.insert(whole.end(), {"--cache-dir", cache});
      if (json) whole.emplace_back("--json");
      const Outcome outcome = hstujit_tool(whole, without_gpu());
      expect_clean(outcome, testing::PrintToString(whole));
      if (json) {
        EXPECT_TRUE(outcome.json().is_object()) << testing::PrintToString(whole);
      }
    }
  }
  const auto listed = hstujit_tool({"cache", "ls", "--cache-dir", cache, "--json"}).json();
  EXPECT_EQ(listed["kernels"][0]["kernel"], kHostileText) << "its value stays";
  EXPECT_EQ(listed["tuning"][0]["device"], kHostileText);
}

}  // namespace
}  // namespace hstujit
