// Sentences of check, doctor and others about configs, caches and folders, and their width.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "tests/paths.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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
  const Variables fake = {{"HSTUJIT_CUDA_DRIVER", binary_path("/test_libraries/libhstujit_fake_cuda.so")}};
  for (const auto& [command, option] : {std::pair("run", "--device"), {"bench", "--device"}, {"tune", "--devices"}}) {
    const Outcome outcome = hstujit_tool({command, "--config", scratch.config(), option, "9"}, fake);
    EXPECT_EQ(outcome.code, 3) << command;
    EXPECT_EQ(outcome.err, std::string("hstujit: ") + option + " is 9; the CUDA driver has devices 0 to 0\n");
  }
}

TEST(Outputs, AFolderThatIsMissingOrTakesNoFileIsRefusedBeforeTheWork) {
  const Scratch scratch;
  const std::string config = scratch.config("nonsense"), missing = (scratch.path() / "none/file").string();
  for (const auto& [command, option] :
       {std::pair(std::vector<std::string>{"bench", "--config", config, "--out"}, "--out"),
        {{"freeze", "--config", config, "--arch", "sm_90a", "-o"}, "--output"},
        {{"cache", "export"}, "FILE"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back(missing);
    const Outcome refused = hstujit_tool(arguments);
    EXPECT_EQ(refused.code, 2) << command[0];
    EXPECT_EQ(refused.err, "hstujit: " + std::string(option) + ": cannot open folder \"" +
                               (scratch.path() / "none").string() + "\": No such file or directory\n");
  }
}

TEST(Outputs, ACacheDirectoryThatIsAFileIsRefusedBeforeTheWork) {
  const Scratch scratch;
  const std::string file = scratch.file("file", "");
  for (const char* command : {"prewarm", "explain", "check"}) {
    const Outcome refused =
        hstujit_tool({command, "--config", scratch.config(), "--arch", "sm_90a", "--cache-dir", file});
    EXPECT_EQ(refused.code, 2) << command;
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err, "hstujit: --cache-dir is \"" + file + "\", which is no directory\n");
  }
}

TEST(Outputs, FreezeNamesTheKeysThatHaveNoKernelAndWritesNothing) {
  const Scratch scratch;
  const std::string file = (scratch.path() / "choices.json").string();
  const Outcome failed = hstujit_tool({"freeze", "--config", scratch.config(), "--arch", "sm_90a", "-o", file},
                                      {{"HSTUJIT_OVERRIDE", R"({"blocks_per_sm": 31})"}});
  EXPECT_NE(failed.code, 0);
  EXPECT_THAT(failed.err, HasSubstr("blocks_per_sm"));
  EXPECT_EQ(failed.err.find("in the report"), std::string::npos) << failed.err;
  EXPECT_FALSE(std::filesystem::exists(file));
}

// Each key had a failure of its own.
TEST(Outputs, AFolderThatCannotBeMadeIsOneFailureOfEmit) {
  const Scratch scratch;
  const std::string file = scratch.file("file", "");
  const Outcome refused = hstujit_tool({"emit", "--config", scratch.config(), "--arch", "sm_90a", "-o", file});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "hstujit: --output: cannot create folder \"" + file + "\": Not a directory\n");
}

TEST(Outputs, NothingIsEmittedWhereTheFolderOfOneInstanceIsAFile) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "out");
  const std::string taken = scratch.file("out/second", "mine");
  const std::string config = scratch.file("two.json", R"({"version": 1, "defaults": {"op": "hstu_attention", "heads": 2,
      "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 64},
      "ops": [{"name": "first"}, {"name": "second", "heads": 4}]})");
  const Outcome refused =
      hstujit_tool({"emit", "--config", config, "--arch", "sm_90a", "-o", (scratch.path() / "out").string()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, testing::StartsWith("hstujit: --output: cannot "));
  EXPECT_THAT(refused.err, HasSubstr(taken));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "out/first"));
}

TEST(Outputs, APlaceWithoutARegularFileIsNotEmittedOver) {
  const Scratch scratch;
  const std::string out = (scratch.path() / "out").string();
  const std::vector<std::string> emit = {"emit", "--config", scratch.config(), "--arch", "sm_90a", "-o", out};
  ASSERT_EQ(hstujit_tool(emit).code, 0);
  const std::filesystem::path taken = std::filesystem::directory_iterator(out)->path();
  std::filesystem::remove(taken);
  std::filesystem::create_directory(taken);
  const Outcome refused = hstujit_tool(emit);
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("the existing file is not a regular file"));
}

TEST(Outputs, AFolderForTemporaryFilesThatIsNotThereIsNamed) {
  const Scratch scratch;
  const Outcome refused =
      hstujit_tool({"cache", "export", (scratch.path() / "b.hstujit").string(), "--cache-dir", scratch.cache()},
                   {{"TMPDIR", "/nope"}});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("TMPDIR is \"/nope\", which is no folder for temporary files"));
}

// It may be of another build, and NVRTC be there.
TEST(Doctor, NothingIsCalledMissingThatMayBeThere) {
  const Scratch scratch;
  const Outcome outcome =
      hstujit_tool({"doctor", "--cache-dir", scratch.cache()},
                   {{"HSTUJIT_COMPILER_LIBRARY", binary_path("/test_libraries/libhstujit_fake_cuda.so")}});
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\ncompiler +cannot be used\n"));
  EXPECT_THAT(outcome.out, testing::ContainsRegex("\nNVRTC +unknown: the compiler library opens it\n"));
  EXPECT_EQ(outcome.out.find("  missing\n"), std::string::npos);
}

TEST(Output, AtTheLimitOfAFilesSizeNobodyIsKilled) {
  const Scratch scratch;
  const Outcome outcome = run_program(
      {"/bin/sh", "-c", R"(ulimit -f 1; exec "$0" freeze --config "$1" --arch sm_90a -o "$2" --cache-dir "$3")",
       binary_path("/bin/hstujit"), scratch.config(R"("directions": ["forward", "backward"])"),
       (scratch.path() / "frozen").string(), scratch.cache()});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("File too large"));
  EXPECT_THAT(outcome.err, HasSubstr("cannot write \"" + (scratch.path() / "frozen").string() + "\""))
      << "what was named";
  EXPECT_FALSE(fs::exists(scratch.path() / "frozen"));
}

TEST(Cache, WhatIsNoCacheIsNotHealthy) {
  const Scratch scratch;
  const std::string file = scratch.file("text", "no bundle"), pipe = (scratch.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {file, pipe, std::string("/dev/null")}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"ls"}, {"verify"}, {"prune", "--max-bytes", "0"}}) {
      std::vector<std::string> words = {"cache"};
      words.insert(words.end(), command.begin(), command.end());
      words.insert(words.end(), {"--cache-dir", path});
      const Outcome named = hstujit_tool(words);
      EXPECT_EQ(named.code, 2) << command.front();
      EXPECT_EQ(named.err, "hstujit: --cache-dir is \"" + path + "\", which is no directory\n");
      EXPECT_EQ(named.out, "");
    }
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

TEST(Output, AFullDiskIsAFailure) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const Outcome outcome = run_program({"/bin/sh", "-c", "exec \"$0\" doctor >/dev/full", binary_path("/bin/hstujit")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write to standard output"));
}

}  // namespace
}  // namespace hstujit
