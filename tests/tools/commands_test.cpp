// Commands that do their work, from a config to files, without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tests/support/whole_file.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

class Compiling : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC here";
  }

  Outcome prewarm(const std::string& cache, std::vector<std::string> more = {}, bool unprivileged = false) const {
    std::vector<std::string> arguments = {"prewarm", "--config", config_, "--arch", "sm_90a", "--cache-dir", cache};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hstujit_tool(arguments, {}, unprivileged);
  }

  // The entry whose name ends in `extension`.
  fs::path entry(const std::string& extension) const {
    for (const auto& file : fs::recursive_directory_iterator(scratch_.cache())) {
      if (file.path().extension() == extension) return file.path();
    }
    return {};
  }

  Scratch scratch_;
  std::string config_ = scratch_.config();
};

TEST_F(Compiling, ASecondPrewarmCompilesNothingAndIsQuick) {
  const Outcome first = prewarm(scratch_.cache());
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.last_line(), "prewarmed: 1 kernel, 1 compiled, 0 hits");
  EXPECT_THAT(first.err, HasSubstr("prewarm 1/1 small forward 64\n"));
  const Outcome second = prewarm(scratch_.cache());
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.last_line(), "prewarmed: 1 kernel, 0 compiled, 1 hit");
  EXPECT_LT(second.seconds, 0.5);
}

// Whoever fills a cache must not leave with an empty one.
TEST_F(Compiling, WhatTheCacheCannotKeepIsAFailure) {
  const std::string file = scratch_.file("occupied", "no folder");
  const Outcome refused = prewarm(file);
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.last_line(), "prewarmed: 1 kernel, 1 compiled, 0 hits");
  EXPECT_THAT(refused.err, HasSubstr("the cache does not keep 1 kernel and 1 tuning record or choice: "));
  EXPECT_THAT(refused.err, HasSubstr("occupied"));
  const auto report = prewarm(file, {"--json"}).json();
  EXPECT_EQ(report["not_kept"]["kernels"], 1);
  EXPECT_FALSE(report["not_kept"]["reason"].get<std::string>().empty());
  EXPECT_FALSE(prewarm(scratch_.cache(), {"--json"}).json().contains("not_kept"));
}

TEST_F(Compiling, AChoiceThatTheCacheCannotKeepIsAFailure) {
  fs::create_directories(scratch_.cache() + "/v1");
  fs::permissions(scratch_.cache(), fs::perms(0700));
  fs::permissions(scratch_.cache() + "/v1", fs::perms(0700));
  std::ofstream(scratch_.cache() + "/v1/choices") << "no folder";
  const Outcome outcome = prewarm(scratch_.cache());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the cache does not keep 0 kernels and 1 tuning record or choice: "));
}

TEST_F(Compiling, AVersionThatNoKernelHasIsAnsweredByThoseThereAre) {
  ASSERT_EQ(prewarm(scratch_.cache()).code, 0);
  const Outcome outcome = hstujit_tool({"cache", "prune", "--nvrtc", "1.0", "--cache-dir", scratch_.cache()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex("no kernel was compiled by NVRTC 1.0; there are those of 1[0-9]\\."));
}

// Of one key, two compiles: what is exported is the same, byte for byte.
TEST_F(Compiling, EqualCachesGiveEqualBundles) {
  std::vector<std::string> bundles;
  for (const char* name : {"one", "two"}) {
    const std::string cache = (scratch_.path() / name).string(), bundle = cache + ".tar.zst";
    ASSERT_EQ(prewarm(cache).code, 0);
    const Outcome exported = hstujit_tool({"cache", "export", bundle, "--cache-dir", cache});
    ASSERT_EQ(exported.code, 0) << exported.err;
    bundles.push_back(*whole_file(bundle));
  }
  EXPECT_TRUE(bundles[0] == bundles[1]);
}

TEST_F(Compiling, JsonIsTheWholeOfStandardOutput) {
  const auto prewarmed = prewarm(scratch_.cache(), {"--json"}).json();
  ASSERT_TRUE(prewarmed.is_object());
  EXPECT_EQ(prewarmed["compiled"], 1);
  const auto explained =
      hstujit_tool({"explain", "--config", config_, "--arch", "sm_90a", "--cache-dir", scratch_.cache(), "--json"})
          .json();
  ASSERT_TRUE(explained.is_object());
  EXPECT_EQ(explained["instances"][0]["cache"]["hit"], true);
  EXPECT_EQ(explained["instances"][0]["key"], prewarmed["instances"][0]["key"]);
  const auto listed = hstujit_tool({"cache", "ls", "--cache-dir", scratch_.cache(), "--json"}).json();
  ASSERT_TRUE(listed.is_object());
  EXPECT_EQ(listed["kernels"].size(), 1u);
  EXPECT_TRUE(hstujit_tool({"cache", "verify", "--cache-dir", scratch_.cache(), "--json"}).json().is_object());
  EXPECT_TRUE(hstujit_tool({"doctor", "--json"}).json().is_object());
}

TEST_F(Compiling, DoctorIsDoneWhereKernelsCanRun) {
  const Outcome outcome = hstujit_tool(
      {"doctor", "--cache-dir", scratch_.cache()},
      {{"HSTUJIT_CUDA_DRIVER", HSTUJIT_BINARY_DIR "/test_libraries/libhstujit_fake_cuda.so"}, {"HSTUJIT_CHEK", "1"}});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("did you mean HSTUJIT_CHECK?"));
  EXPECT_EQ(outcome.last_line(), "doctor: nothing keeps kernels from running; 1 warning");
}

TEST_F(Compiling, TablesHaveNoColourInAPipe) {
  const Outcome outcome = prewarm(scratch_.cache());
  EXPECT_EQ(outcome.out.find('\033'), std::string::npos);
  EXPECT_EQ(outcome.err.find('\033'), std::string::npos);
}

TEST_F(Compiling, ExplainSaysWhereTheKernelIs) {
  const std::vector<std::string> explain = {"explain", "--config",    config_,         "--arch",
                                            "sm_90a",  "--cache-dir", scratch_.cache()};
  const std::string missed = hstujit_tool(explain).out;
  EXPECT_THAT(missed, HasSubstr("miss; searched " + scratch_.cache()));
  EXPECT_THAT(missed, testing::ContainsRegex("rejected: [a-z_]+=[0-9]")) << "a reason and its count stay together";
  ASSERT_EQ(prewarm(scratch_.cache()).code, 0);
  EXPECT_THAT(hstujit_tool(explain).out, HasSubstr("hit in " + scratch_.cache()));
}

TEST_F(Compiling, ExplainSaysThatNoDirectoryCanBeUsed) {
  fs::create_directory(scratch_.cache());
  fs::permissions(scratch_.cache(), fs::perms::all);
  const Outcome outcome =
      hstujit_tool({"explain", "--config", config_, "--arch", "sm_90a", "--cache-dir", scratch_.cache()});
  EXPECT_THAT(outcome.out, HasSubstr("miss; no cache directory can be used; on a miss: heuristic"));
  EXPECT_THAT(outcome.err, HasSubstr("nothing of " + scratch_.cache() + " is used"));
}

TEST_F(Compiling, ADamagedKernelIsNamedByVerifyAndBuiltAnew) {
  ASSERT_EQ(prewarm(scratch_.cache()).code, 0);
  EXPECT_EQ(hstujit_tool({"cache", "verify", "--cache-dir", scratch_.cache()}).code, 0);
  const fs::path cubin = entry(".cubin");
  ASSERT_FALSE(cubin.empty());
  fs::resize_file(cubin, fs::file_size(cubin) / 2);
  const Outcome verify = hstujit_tool({"cache", "verify", "--cache-dir", scratch_.cache()});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.out, HasSubstr(cubin.stem().string()));
  EXPECT_EQ(prewarm(scratch_.cache()).last_line(), "prewarmed: 1 kernel, 1 compiled, 0 hits");
  EXPECT_EQ(hstujit_tool({"cache", "verify", "--cache-dir", scratch_.cache()}).code, 0);
}

TEST_F(Compiling, PruneToNothingRemovesEverything) {
  ASSERT_EQ(prewarm(scratch_.cache()).code, 0);
  const Outcome prune = hstujit_tool({"cache", "prune", "--max-bytes", "0", "--cache-dir", scratch_.cache()});
  EXPECT_EQ(prune.code, 0) << prune.err;
  EXPECT_THAT(prune.out, HasSubstr("pruned: 1 kernel removed"));
  EXPECT_THAT(hstujit_tool({"cache", "ls", "--cache-dir", scratch_.cache()}).out, HasSubstr("0 kernels"));
}

TEST_F(Compiling, AReadOnlyCacheStillWorks) {
  ASSERT_EQ(prewarm(scratch_.cache()).code, 0);
  // Readable by everybody, writable by nobody; the folders above it must be open to the user that runs the program.
  for (fs::path folder = scratch_.path(); folder.has_relative_path(); folder = folder.parent_path()) {
    std::error_code ignored;
    fs::permissions(folder,
                    fs::perms::group_exec | fs::perms::others_exec | fs::perms::group_read | fs::perms::others_read,
                    fs::perm_options::add, ignored);
  }
  const auto set_writable = [&](bool writable) {
    for (const auto& file : fs::recursive_directory_iterator(scratch_.cache())) {
      chmod(file.path().c_str(), file.is_directory() ? (writable ? 0755 : 0555) : (writable ? 0644 : 0444));
    }
    chmod(scratch_.cache().c_str(), writable ? 0755 : 0555);
  };
  set_writable(false);
  const Outcome hit = prewarm(scratch_.cache(), {}, true);
  const std::string other =
      scratch_.file("other.json", R"({"version": 1, "ops": [{"name": "other", "op": "hstu_attention",
    "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64, "causal": false, "lengths": [9]}]})");
  chmod(other.c_str(), 0644);
  const Outcome miss =
      hstujit_tool({"prewarm", "--config", other, "--arch", "sm_90a", "--cache-dir", scratch_.cache()}, {}, true);
  const Outcome pruned =
      hstujit_tool({"cache", "prune", "--max-bytes", "0", "--cache-dir", scratch_.cache()}, {}, true);
  set_writable(true);
  if (hit.code == 127) GTEST_SKIP() << "another user cannot run the program here";
  EXPECT_EQ(hit.code, 0) << hit.err;
  EXPECT_EQ(hit.last_line(), "prewarmed: 1 kernel, 0 compiled, 1 hit");
  EXPECT_EQ(pruned.code, 1) << pruned.out;
  EXPECT_THAT(pruned.err, HasSubstr("1 kernel could not be removed: "));
  EXPECT_THAT(pruned.err, HasSubstr("Permission denied"));
  EXPECT_EQ(miss.code, 1) << "compiled for nothing";
  EXPECT_EQ(miss.last_line(), "prewarmed: 1 kernel, 1 compiled, 0 hits");
  EXPECT_THAT(miss.err, HasSubstr("the cache does not keep 1 kernel and 1 tuning record or choice: "));
}

TEST_F(Compiling, WhatEmitWritesCompilesWithNvcc) {
  const fs::path folder = scratch_.path() / "emitted";
  const Outcome emit = hstujit_tool({"emit", "--config", config_, "--arch", "sm_90a", "-o", folder.string(), "--json"});
  ASSERT_EQ(emit.code, 0) << emit.err;
  const auto files = emit.json()["instances"][0]["files"];
  ASSERT_TRUE(files.contains("source") && files.contains("ir") && files.contains("launcher")) << emit.out;
  for (const auto& [kind, path] : files.items()) EXPECT_GT(fs::file_size(path.get<std::string>()), 100u) << kind;

  const Outcome text = hstujit_tool({"emit", "--config", config_, "--arch", "sm_90a", "-o", folder.string()});
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(text.out, HasSubstr("folder    " + folder.string() + "\n"));
  EXPECT_THAT(text.out, HasSubstr("_main.cu\n"));

  std::string nvcc = "nvcc";
  if (run_program({nvcc, "--version"}).code != 0) nvcc = "/usr/local/cuda/bin/nvcc";
  if (run_program({nvcc, "--version"}).code != 0) GTEST_SKIP() << "no nvcc here";
  const Outcome compiled = run_program({nvcc, "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-o",
                                        (folder / "program").string(), files["launcher"].get<std::string>()});
  EXPECT_EQ(compiled.code, 0) << compiled.out << compiled.err;
}

// Two kernels that differ late in their text, within the width of a table.
TEST(Check, ShowsWhatInstancesAreAndTheirKernelsWhole) {
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1, "device": "H200", "ops": [{"name": "rank",
      "op": "hstu_attention", "dtype": "fp16", "heads": 4, "attn_dim": 96, "hidden_dim": 128, "num_targets": 64,
      "max_attn_len": 512, "contextual_seq_len": 8, "max_seq_len": [2048, 8192],
      "directions": ["forward", "backward"]}]})");
  const Outcome outcome = hstujit_tool({"check", "--config", config, "--cache-dir", scratch.cache()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rank: hstu_attention, 8 keys\n  dtype=fp16 heads=4 attn_dim=96 hidden_dim=128 "
                                     "num_targets max_attn_len=512 contextual_seq_len=8\n"));
  EXPECT_THAT(outcome.out, HasSubstr(" heuristic\n"));
  EXPECT_EQ(outcome.out.find("…"), std::string::npos) << outcome.out;
}

// A word that is longer, such as a path, has a line of its own.
TEST(Doctor, FindingsGoOnInTheNextLine) {
  const Scratch scratch;
  const Outcome outcome =
      hstujit_tool({"doctor", "--cache-dir", scratch.cache()}, {{"HSTUJIT_CUDA_DRIVER", "/nonexistent/libcuda.so.1"},
                                                                {"HSTUJIT_NVRTC", "/nonexistent/libnvrtc.so"},
                                                                {"HSTUJIT_OVERRIDE", R"({"stages": 3})"},
                                                                {"HSTUJIT_NO_SUCH", "1"}});
  EXPECT_THAT(outcome.out, HasSubstr("\n  what to do: "));
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Check, ManyParametersStandOnSeveralLines) {
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1, "ops": [{"name": "many",
      "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64, "num_targets": true,
      "max_attn_len": 5, "min_full_attn_seq_len": 3, "contextual_seq_len": 4, "target_group_size": 2,
      "score": "sigmoid", "rab_heads": 1, "attn_scale": "scalar", "offsets_dtype": "int32", "alignment": 8}]})");
  const Outcome outcome = hstujit_tool({"check", "--config", config, "--cache-dir", scratch.cache()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\\'), std::string::npos) << "a line end is no text";
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Devices, OneThatThereIsNotIsNamedByItsOption) {
  const Scratch scratch;
  const Variables fake = {{"HSTUJIT_CUDA_DRIVER", HSTUJIT_BINARY_DIR "/test_libraries/libhstujit_fake_cuda.so"}};
  for (const auto& [command, option] : {std::pair("run", "--device"), {"bench", "--device"}, {"tune", "--devices"}}) {
    const Outcome outcome = hstujit_tool({command, "--config", scratch.config(), option, "9"}, fake);
    EXPECT_EQ(outcome.code, 3) << command;
    EXPECT_EQ(outcome.err, std::string("hstujit: ") + option + " is 9; the CUDA driver has devices 0 to 0\n");
  }
}

// Everything was timed, and then nothing was shown.
TEST_F(Compiling, WhatWasTimedIsShownWhereItCannotBeWritten) {
  const std::string config = scratch_.file("silu.json", R"({"version": 1, "ops": [{"name": "a", "op": "silu",
      "width": 64, "rows": 10, "directions": ["forward"]}]})");
  const std::string bench = HSTUJIT_BINARY_DIR "/bin/hstujit bench --repeats 1 --config " + config + " --cache-dir " +
                            scratch_.cache() + " --out " + (scratch_.path() / "report").string();
  for (const char* json : {"", " --json"}) {
    // No file takes a byte; standard output is a pipe.
    const Outcome full =
        run_program({"bash", "-c", "(ulimit -f 0; " + bench + json + "; echo \"exit $?\" >&2) 2>&1 | cat"},
                    {{"HSTUJIT_CUDA_DRIVER", HSTUJIT_BINARY_DIR "/test_libraries/libhstujit_fake_cuda.so"}});
    EXPECT_THAT(full.out, HasSubstr("report\": File too large"));
    EXPECT_THAT(full.out, HasSubstr(*json == '\0' ? "ceilings of this run" : "\"ceilings\""));
    EXPECT_THAT(full.out, EndsWith("exit 1\n"));
  }
}

TEST(Outputs, AFolderThatIsMissingOrTakesNoFileIsRefusedBeforeTheWork) {
  const Scratch scratch;
  const std::string config = scratch.config("nonsense"), missing = (scratch.path() / "none/file").string();
  for (const std::vector<std::string>& command : {std::vector<std::string>{"bench", "--config", config, "--out"},
                                                  {"freeze", "--config", config, "--arch", "sm_90a", "-o"},
                                                  {"cache", "export"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back(missing);
    const Outcome refused = hstujit_tool(arguments);
    EXPECT_EQ(refused.code, 2) << command[0];
    EXPECT_EQ(refused.err, "hstujit: cannot open folder \"" + (scratch.path() / "none").string() +
                               "\": No such file or directory\n");
  }
}

// Each key had a failure of its own.
TEST(Outputs, AFolderThatCannotBeMadeIsOneFailureOfEmit) {
  const Scratch scratch;
  const std::string file = scratch.file("file", "");
  const Outcome refused = hstujit_tool({"emit", "--config", scratch.config(), "--arch", "sm_90a", "-o", file});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.err, "hstujit: cannot create folder \"" + file + "\": Not a directory\n");
}

// It may be of another build, and NVRTC be there.
TEST(Doctor, NothingIsCalledMissingThatMayBeThere) {
  const Scratch scratch;
  const Outcome outcome =
      hstujit_tool({"doctor", "--cache-dir", scratch.cache()},
                   {{"HSTUJIT_COMPILER_LIBRARY", HSTUJIT_BINARY_DIR "/test_libraries/libhstujit_fake_cuda.so"}});
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\ncompiler +cannot be used\n"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\nNVRTC +unknown: the compiler library opens it\n"));
  EXPECT_EQ(outcome.out.find("  missing\n"), std::string::npos);
}

TEST(Host, RunsAndAgreesWithTheReference) {
  const Scratch scratch;
  const std::vector<std::string> run = {"run",       "--config", scratch.config(R"("num_targets": 3)"),
                                        "--backend", "host",     "--check"};
  const Outcome outcome = hstujit_tool(run);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("agrees"));
  EXPECT_THAT(outcome.err, testing::StartsWith("run 0/1 small forward ")) << "what is under way is said before it ends";
  std::vector<std::string> limited = run;
  limited.insert(limited.end(), {"--max-rows", "80", "--json"});
  const auto report = hstujit_tool(limited).json();
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["runs"][0]["rows"], 80);
  EXPECT_EQ(report["runs"][0]["sequences"], 3);
  EXPECT_EQ(report["runs"][0]["sequences_left_out"], 1);
  EXPECT_EQ(report["runs"][0]["agrees"], true);
}

// Such a batch takes more memory than there is: that is known before any of it is taken.
TEST(Host, ABatchThatTheMachineHasNoRoomForIsRefused) {
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1, "ops": [{"name": "large",
      "op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 256,
      "lengths": {"batch": 268435456}}]})");
  std::vector<std::string> run = {"run", "--config", config, "--backend", "host", "--json"};
  const Outcome refused = run_program({"/bin/sh", "-c", R"(ulimit -v 4000000; exec "$0" "$@")",
                                       HSTUJIT_BINARY_DIR "/bin/hstujit", run[0], run[1], run[2], run[3], run[4]});
  EXPECT_EQ(refused.code, 1) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("of 268435456 sequences with max_seq_len 256 take "));
  run.insert(run.end(), {"--max-rows", "100"});
  const Outcome limited = hstujit_tool(run);
  EXPECT_EQ(limited.code, 0) << limited.err;
  EXPECT_EQ(limited.json()["runs"][0]["rows"], 100);
  const auto row = limited.json()["runs"][0];
  EXPECT_EQ(row["sequences"].get<int64_t>() + row["sequences_left_out"].get<int64_t>(), 268435456);
}

// All lengths of the batch were drawn, to say how many rows were left out: 16 seconds.
TEST(Host, OfABatchThatIsCutNoMoreIsDrawnThanIsUsed) {
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1, "ops": [{"name": "large",
      "op": "concat_2d_jagged", "width": 8, "max_seq_len": 256, "lengths": {"batch": 268435456}}]})");
  const Outcome outcome = hstujit_tool({"run", "--config", config, "--backend", "host", "--max-rows", "100"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_LT(outcome.seconds, 5);
}

// Sequences without rows take memory, too: for each, a number in every tensor of offsets and of counts.
TEST(Host, ABatchOfTooManySequencesIsRefusedWhateverTheirLengths) {
  constexpr double kNeeded = 2 * 96.0 * 268435456;
  if (static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) > kNeeded)
    GTEST_SKIP() << "there is room for it";
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1, "ops": [{"name": "empty",
      "op": "hstu_attention", "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64, "num_targets": 3,
      "lengths": {"low": 0, "high": 0, "batch": 268435456}}]})");
  const Outcome refused =
      run_program({"/bin/sh", "-c", R"(ulimit -v 4000000; exec "$0" "$@")", HSTUJIT_BINARY_DIR "/bin/hstujit", "run",
                   "--config", config, "--backend", "host"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("the lengths of 268435456 sequences with max_seq_len 64 take 5.15e+10 bytes"));
}

TEST(Host, AnInstanceWithoutRoomLeavesTheOthersTheirResults) {
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1, "ops": [
      {"name": "y", "op": "silu", "width": 64, "rows": 5},
      {"name": "x", "op": "addmm", "k": 65536, "n": 65536, "rows": 1},
      {"name": "z", "op": "silu", "width": 64, "rows": 5}]})");
  const Outcome outcome =
      run_program({"/bin/sh", "-c", R"(ulimit -v 8000000; exec "$0" "$@")", HSTUJIT_BINARY_DIR "/bin/hstujit", "run",
                   "--config", config, "--backend", "host", "--check", "--json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("x forward: "));
  EXPECT_THAT(outcome.err, HasSubstr(" bytes to generate; this process may have (ulimit -v) 8.19e+09"));
  const auto runs = outcome.json()["runs"];
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0]["agrees"], true);
  EXPECT_EQ(runs[2]["agrees"], true);
}

TEST(Output, AtTheLimitOfAFilesSizeNobodyIsKilled) {
  const Scratch scratch;
  const Outcome outcome = run_program(
      {"/bin/sh", "-c", R"(ulimit -f 1; exec "$0" freeze --config "$1" --arch sm_90a -o "$2" --cache-dir "$3")",
       HSTUJIT_BINARY_DIR "/bin/hstujit", scratch.config(R"("directions": ["forward", "backward"])"),
       (scratch.path() / "frozen").string(), scratch.cache()});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("File too large"));
  EXPECT_THAT(outcome.err, HasSubstr("cannot write \"" + (scratch.path() / "frozen").string() + "\""))
      << "what was named";
  EXPECT_FALSE(fs::exists(scratch.path() / "frozen"));
}

TEST(Host, RepeatsAreComparedWithTheFirstLaunch) {
  const Scratch scratch;
  const std::vector<std::string> run = {
      "run", "--config", scratch.config(R"("directions": ["backward"])"), "--backend", "host", "--repeats", "3"};
  const Outcome outcome = hstujit_tool(run, {{"HSTUJIT_DETERMINISTIC", "1"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("3 of 3"));
  std::vector<std::string> checked = run;
  checked.insert(checked.end(), {"--check", "--json"});
  const auto row = hstujit_tool(checked).json()["runs"][0];
  EXPECT_EQ(row["agrees"], true);
  EXPECT_EQ(row["repeats"], 3);
  EXPECT_EQ(row["repeats_equal"], 3);
  EXPECT_EQ(hstujit_tool({"run", "--config", scratch.config(), "--repeat", "0"}).code, 2);
}

TEST(Host, RunsBackwardAndAgreesWithTheReference) {
  const Scratch scratch;
  const std::vector<std::string> run = {
      "run",       "--config", scratch.config(R"("num_targets": 3, "directions": ["backward", "forward"])"),
      "--backend", "host",     "--check",
      "--json"};
  const Outcome outcome = hstujit_tool(run, {{"HSTUJIT_CHECK", "1"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto runs = outcome.json()["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["direction"], "backward");
  EXPECT_EQ(runs[0]["bound"], 1e-2);
  for (const auto& row : runs) EXPECT_EQ(row["agrees"], true) << row.dump();
}

TEST(Cache, WhatIsNoCacheIsNotHealthy) {
  const Scratch scratch;
  const std::string file = scratch.file("text", "no bundle"), pipe = (scratch.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {file, pipe, std::string("/dev/null")}) {
    const Outcome named = hstujit_tool({"cache", "verify", "--cache-dir", path});
    EXPECT_EQ(named.code, 1) << path;
    EXPECT_THAT(named.out, HasSubstr(path + ": ")) << named.out;
    const Outcome listed =
        hstujit_tool({"cache", "verify", "--cache-dir", scratch.path().string()}, {{"HSTUJIT_CACHE_PATH", path}});
    EXPECT_EQ(listed.code, 1) << path;
    EXPECT_THAT(listed.out, HasSubstr(path + ": ")) << listed.out;
  }
  const std::string missing = (scratch.path() / "missing").string();
  for (const char* command : {"ls", "verify"}) {
    const Outcome outcome = hstujit_tool({"cache", command, "--cache-dir", missing});
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("--cache-dir is \"" + missing + "\", which does not exist"));
  }
  const std::string dangling = (scratch.path() / "dangling").string();
  fs::create_symlink(missing, dangling);
  for (const char* command : {"ls", "verify"}) {
    const Outcome outcome = hstujit_tool({"cache", command, "--cache-dir", dangling});
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_THAT(outcome.err, HasSubstr("--cache-dir is \"" + dangling + "\", a link that leads nowhere"));
  }
  EXPECT_EQ(hstujit_tool({"cache", "verify"}, {{"HSTUJIT_CACHE_DIR", missing}}).code, 0) << "not made yet";
}

// Where scores saturate, what a step adds by itself is more than what the rounding between steps does.
TEST(Host, GradientsOfSaturatedScoresInAProgramAgree) {
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1, "ops": [
      {"name": "a", "op": "hstu_preprocess_and_attention", "dtype": "fp16", "attn_dim": 24, "hidden_dim": 96,
       "score": "sigmoid", "rab_heads": 1, "width": 24, "max_seq_len": 3, "lengths": [2], "alpha": 1,
       "directions": ["backward"]}]})");
  for (const char* seed : {"1", "7", "8"}) {
    const Outcome outcome = hstujit_tool({"run", "--config", config, "--backend", "host", "--check", "--seed", seed});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
}

// A program: steps one after the other, each the operator that it is.
TEST(Host, RunsNormAndAttentionInOneLaunch) {
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1,
      "defaults": {"op": "norm_attention", "heads": 2, "attn_dim": 32, "hidden_dim": 64, "max_seq_len": 256,
                   "lengths": [20, 0, 256, 1], "directions": ["forward", "backward"]},
      "ops": [{"name": "layer", "num_targets": 3}, {"name": "rms", "norm": "rms_norm", "dtype": "fp16"},
              {"name": "exact", "dtype": "fp32", "precision": "ieee", "weight": false, "rab_heads": 1},
              {"name": "full", "dtype": "fp32", "causal": false, "max_attn_len": -1}]})");
  const Outcome outcome =
      hstujit_tool({"run", "--config", config, "--backend", "host", "--check", "--json"}, {{"HSTUJIT_CHECK", "1"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto runs = outcome.json()["runs"];
  ASSERT_EQ(runs.size(), 8u);
  for (const auto& row : runs) EXPECT_EQ(row["agrees"], true) << row.dump();
  const Outcome checked = hstujit_tool({"check", "--config", config, "--arch", "sm_90a", "--op", "layer"});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("layer/layer_norm: layer_norm, 2 keys"));
  EXPECT_THAT(checked.out, HasSubstr("layer/hstu_attention: hstu_attention, 4 keys"));
  EXPECT_THAT(checked.out, HasSubstr("valid: 1 instance, 6 keys"));
}

TEST(Host, RunsLastRowsOfSequencesAndAgreesWithTheReference) {
  const Scratch scratch;
  const std::string config = scratch.file("config.json", R"({"version": 1,
      "defaults": {"op": "delta_hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 256,
                   "lengths": [20, 0, 256, 130], "num_targets": 3},
      "ops": [{"name": "dense", "delta_len": 30},
              {"name": "jagged", "jagged_queries": true, "delta_len": [1, 300]}]})");
  const std::vector<std::string> run = {"run", "--config", config, "--backend", "host", "--check", "--json"};
  const Outcome outcome = hstujit_tool(run);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto runs = outcome.json()["runs"];
  EXPECT_EQ(runs[0]["query_rows"], 120);
  EXPECT_EQ(runs[1]["query_rows"], 602);
  std::vector<std::string> limited = run;
  limited.insert(limited.end(), {"--max-rows", "100"});
  const auto fewer = hstujit_tool(limited).json()["runs"];
  EXPECT_EQ(fewer[0]["rows"], 100);
  EXPECT_EQ(fewer[0]["query_rows"], 90) << "of three sequences";
  EXPECT_EQ(fewer[1]["query_rows"], 302);
  for (const auto& report : {runs, fewer}) {
    for (const auto& row : report) EXPECT_EQ(row["agrees"], true) << row.dump();
  }
}

TEST(Output, AFullDiskIsAFailure) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Outcome outcome =
      run_program({"/bin/sh", "-c", "exec \"$0\" doctor >/dev/full", HSTUJIT_BINARY_DIR "/bin/hstujit"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write to standard output"));
}

}  // namespace
}  // namespace hstujit
