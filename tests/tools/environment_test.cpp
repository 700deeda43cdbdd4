// Answers where the machine lacks something, or a variable is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/paths.h"
#include "tests/tools/exit_codes.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

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

TEST(Missing, OperationsLibraryIsNamedWithWhatWasLookedFor) {
  const Scratch scratch;
  const Variables none = {{"HSTUJIT_OPERATIONS_LIBRARY", "/nonexistent/libhstujit_operations.so"}};
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"prewarm", "--config", scratch.config(), "--arch", "sm_90a"},
        {"cache", "ls"},
        {"doctor"}}) {
    const Outcome outcome = hstujit_tool(command, none);
    EXPECT_EQ(outcome.code, kUnavailable) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/libhstujit_operations.so"));
  }
}

TEST(Missing, HostLibraryIsNamedWithWhatWasLookedFor) {
  const Scratch scratch;
  const Outcome outcome = hstujit_tool({"run", "--config", scratch.config(), "--backend", "host"},
                                       {{"HSTUJIT_HOST_LIBRARY", "/nonexistent/libhstujit_host.so"}});
  EXPECT_EQ(outcome.code, kUnavailable) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/nonexistent/libhstujit_host.so"));
  EXPECT_THAT(outcome.err, testing::StartsWith("hstujit: the host backend ")) << "before any input is made";
  EXPECT_EQ(outcome.out, "");
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
  const std::string text = std::regex_replace(outcome.out, std::regex("\\s+"), " ");  // lines go on in the next one
  for (const auto& finding : report["findings"]) {
    const std::string problem = finding["problem"];
    const size_t first = text.find(problem);
    EXPECT_NE(first, std::string::npos) << problem;
    EXPECT_EQ(text.find(problem, first + 1), std::string::npos) << "once is enough: " << problem;
  }
}

// A stack that is used up ends the program without a word.
TEST(Missing, AStackIsNamedWithWhatIsNeeded) {
  const auto with = [](const char* limit) {
    return run_program({"/bin/sh", "-c", std::string("ulimit -S -s ") + limit + R"( && exec "$0" check --config a)",
                        binary_path("/bin/hstujit")});
  };
  for (const char* limit : {"32", "96", "511"}) {
    const Outcome outcome = with(limit);
    EXPECT_EQ(outcome.code, kFailed) << limit;
    EXPECT_EQ(outcome.err, std::string("hstujit: the stack limit is ") + limit +
                               " KiB; it must be at least 512 KiB, as after ulimit -s 512\n");
  }
  EXPECT_EQ(with("512").code, kBadRequest) << "there is no such config";
}

TEST(Doctor, PathsAreAsShortAsTheyMayBe) {
  const auto report = hstujit_tool({"doctor", "--json"}).json();
  for (const char* part : {"compiler", "nvrtc", "host_backend", "worker"})
    EXPECT_EQ(report[part].value("path", "").find("/.."), std::string::npos) << report[part];
  EXPECT_EQ(report["compiler"].value("path", ""), binary_path("/lib/libhstujit_compiler.so"));
}

TEST(Environment, AWrongVariableIsABadRequest) {
  const Outcome outcome = hstujit_tool({"cache", "ls"}, {{"HSTUJIT_ON_MISS", "panic"}});
  EXPECT_EQ(outcome.code, kBadRequest);
  EXPECT_THAT(outcome.err, HasSubstr("HSTUJIT_ON_MISS"));
  EXPECT_THAT(outcome.err, HasSubstr("panic"));
  const Outcome two = hstujit_tool({"cache", "ls"},
                                   {{"HSTUJIT_ON_MISS", "fial"}, {"HSTUJIT_OVERRIDE", R"({"stages": 0, "block": 1})"}});
  EXPECT_THAT(two.err, testing::ContainsRegex("^hstujit: HSTUJIT_ON_MISS is \"fial\", [^\n]*\n"
                                              "hstujit: HSTUJIT_OVERRIDE.block [^\n]*\n"
                                              "hstujit: HSTUJIT_OVERRIDE.stages is 0; [^\n]*\n$"));
  for (const char* path : {"/", "/proc/self/mem", "/nonexistent/choices.json"})
    EXPECT_EQ(hstujit_tool({"cache", "ls"}, {{"HSTUJIT_FROZEN", path}}).code, kBadRequest) << path;
}

// A mistake for all kernels is reported once; a value that does not fit one kernel leaves the config valid.
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
  EXPECT_EQ(unfit.last_line(), "valid: 1 instance, 8 keys; 8 keys without a kernel");
  EXPECT_THAT(unfit.err, HasSubstr("HSTUJIT_OVERRIDE.threads_per_row (value 8) is not a known field"));
  EXPECT_EQ(with("prewarm", R"({"threads_per_row": 8})").last_line(),
            "prewarmed: 0 kernels, 0 compiled, 0 hits, 8 keys without a kernel");
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

}  // namespace
}  // namespace hstujit
