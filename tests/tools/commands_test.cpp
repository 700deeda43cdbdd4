// Commands that do their work, from a config to files, without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "tests/paths.h"
#include "tests/support/whole_file.h"
#include "tests/tools/compiling.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

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

// A user who fills a cache must not end up with an empty one.
TEST_F(Compiling, WhatTheCacheCannotKeepIsAFailure) {
  const std::string file = scratch_.file("occupied", "no folder") + "/below";
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

// Two compiles of one key: the exports are the same, byte for byte.
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

// The page has what explain, the cache and bench say, and nothing of theirs ends its script.
TEST_F(Compiling, ReportIsOnePageWithTheDataInIt) {
  ASSERT_EQ(prewarm(scratch_.cache()).code, 0);
  const std::string page = (scratch_.path() / "report.html").string();
  const std::string bench = scratch_.file("bench.json", R"({"results": [{"name": "</script><!--", "median_ms": 1}]})");
  const std::vector<std::string> report = {"report", "--config",    config_,          "--arch",  "sm_90a", "-o",
                                           page,     "--cache-dir", scratch_.cache(), "--bench", bench};
  const Outcome outcome = hstujit_tool(report);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.last_line(), "report: 1 key in " + page);
  const std::string html = *whole_file(page), begin = R"(id="data">)";
  const size_t first = html.find(begin) + begin.size();
  const auto data = nlohmann::json::parse(html.substr(first, html.find("</script>", first) - first));
  EXPECT_EQ(data["explain"]["instances"][0]["cache"]["hit"], true);
  EXPECT_EQ(data["cache"]["kernels"].size(), 1u);
  EXPECT_EQ(data["bench"]["results"][0]["name"], "</script><!--");
  EXPECT_EQ(html.find("://"), html.find("://www.w3.org/2000/svg")) << "it loads nothing";
  EXPECT_EQ(hstujit_tool(report).code, 0) << "replaces its own";
  std::vector<std::string> mistaken = report;
  mistaken.back() = config_;
  EXPECT_THAT(hstujit_tool(mistaken).err, HasSubstr("is no report of hstujit bench"));
}

TEST_F(Compiling, DoctorIsDoneWhereKernelsCanRun) {
  const Outcome outcome = hstujit_tool(
      {"doctor", "--cache-dir", scratch_.cache()},
      {{"HSTUJIT_CUDA_DRIVER", binary_path("/test_libraries/libhstujit_fake_cuda.so")}, {"HSTUJIT_CHEK", "1"}});
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

// Everything was timed, and then nothing was shown.
TEST_F(Compiling, WhatWasTimedIsShownWhereItCannotBeWritten) {
  const std::string config = scratch_.file("silu.json", R"({"version": 1, "ops": [{"name": "a", "op": "silu",
      "width": 64, "rows": 10, "directions": ["forward"]}]})");
  const std::string bench = binary_path("/bin/hstujit bench --repeats 1 --config ") + config + " --cache-dir " +
                            scratch_.cache() + " --out " + (scratch_.path() / "report").string();
  for (const char* json : {"", " --json"}) {
    // No file takes a byte; standard output is a pipe.
    const Outcome full =
        run_program({"bash", "-c", "(ulimit -f 0; " + bench + json + "; echo \"exit $?\" >&2) 2>&1 | cat"},
                    {{"HSTUJIT_CUDA_DRIVER", binary_path("/test_libraries/libhstujit_fake_cuda.so")}});
    EXPECT_THAT(full.out, HasSubstr("report\": File too large"));
    EXPECT_THAT(full.out, HasSubstr(*json == '\0' ? "ceilings of this run" : "\"ceilings\""));
    EXPECT_THAT(full.out, EndsWith("exit 1\n"));
  }
}

}  // namespace
}  // namespace hstujit
