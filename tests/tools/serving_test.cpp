// A serving machine as docs/deployment.md has it: the program, the library and a bundle, and nothing else. Cubins come
// from a compiler library that only pretends to compile, so that no NVRTC is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/paths.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class Serving : public testing::Test {
 protected:
  // An installation below `name`, with the shipped records or without them.
  std::string install(const std::string& name, bool with_records) const {
    // Deep enough for the way from the library to the records, wherever that has been configured to be.
    const fs::path root = scratch_.path() / name / "a" / "b";
    fs::create_directories(root / "bin");
    fs::create_directories(root / "lib");
    fs::copy(binary_path("/bin/hstujit"), root / "bin" / "hstujit");
    for (const auto& file : fs::directory_iterator(binary_path("/lib"))) {
      const std::string library = file.path().filename().string();
      if (library.starts_with("libhstujit.so") || library == "libhstujit_operations.so")
        fs::copy(file.path(), root / "lib" / library);
    }
    if (with_records) {
      const fs::path records = root / "lib" / HSTUJIT_RECORDS_FROM_LIBRARY;
      fs::create_directories(records.parent_path().lexically_normal());
      fs::create_directory_symlink(binary_path("/records"), records.lexically_normal());
    }
    return (root / "bin" / "hstujit").string();
  }

  Variables origin_variables() const {
    const Outcome doctor = hstujit_tool({"doctor", "--json"});
    return {{"HSTUJIT_CACHE_DIR", scratch_.cache()},
            {"HSTUJIT_COMPILER_LIBRARY", binary_path("/test_libraries/libhstujit_fake_compiler.so")},
            {"FAKE_COMPILER_GENERATOR", doctor.json()["library"]["generator"].get<std::string>()},
            {"FAKE_COMPILER_SCRIPT", "{}"}};
  }
  Variables serving_variables(const std::string& bundle) const {
    return {{"HSTUJIT_CACHE_DIR", (scratch_.path() / "empty").string()},
            {"HSTUJIT_CACHE_PATH", bundle},
            {"HSTUJIT_COMPILER_LIBRARY", (scratch_.path() / "none.so").string()},
            {"HSTUJIT_ON_MISS", "fail"}};
  }

  static std::vector<std::string> prewarm(const std::string& program, std::vector<std::string> more = {}) {
    std::vector<std::string> command = {
        program, "prewarm", "--config", source_path("/examples/configs/dlrm_hstu.json"), "--arch", "H200"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  static std::vector<std::string> choices_of(const nlohmann::json& report) {
    std::vector<std::string> choices;
    for (const auto& row : report["instances"]) {
      choices.push_back(row["name"].dump() + row["bucket"].dump() + row["from"].dump() + row["config"].dump() +
                        row["key"].dump());
    }
    return choices;
  }

  Scratch scratch_;
};

TEST_F(Serving, ABundleIsAllThatTheLibraryNeeds) {
  const std::string origin = install("origin", true), serving = install("serving", false);
  const std::string bundle = (scratch_.path() / "model.hstujit").string();
  const Outcome made = run_program(prewarm(origin, {"--json"}), origin_variables());
  ASSERT_EQ(made.code, 0) << made.err;
  ASSERT_EQ(choices_of(made.json()).size(), 18u);
  const std::string kernels = made.json()["kernels"].dump();
  EXPECT_THAT(made.out, HasSubstr("\"from\": \"tuning\"")) << "by the shipped records";
  const Outcome packed = run_program({origin, "cache", "export", bundle}, origin_variables());
  ASSERT_EQ(packed.code, 0) << packed.err;
  EXPECT_THAT(packed.last_line(), HasSubstr("exported: " + kernels + " kernels, 0 tuning records, 18 choices; "));

  const Outcome served = run_program(prewarm(serving, {"--json"}), serving_variables(bundle));
  EXPECT_EQ(served.code, 0) << served.err;
  EXPECT_EQ(choices_of(served.json()), choices_of(made.json()));
  const Outcome checked = run_program(prewarm(serving, {"--check"}), serving_variables(bundle));
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_EQ(checked.last_line(), "checked: " + kernels + " kernels, " + kernels + " hits");
  EXPECT_FALSE(fs::exists(scratch_.path() / "empty")) << "nothing is written";

  const Outcome without = run_program(prewarm(serving), serving_variables(""));
  EXPECT_EQ(without.code, 1);
  EXPECT_THAT(without.last_line(), HasSubstr("0 compiled, 0 hits, "));
  EXPECT_THAT(without.last_line(), HasSubstr(" missing"));
  EXPECT_THAT(without.err, AllOf(HasSubstr("rank-256 forward 256"), HasSubstr(": the kernel hstu_attention_forward_")));
}

TEST_F(Serving, RecordsThatAreShippedAreCountedAndListedOnDemand) {
  const std::string program = install("origin", true);
  ASSERT_EQ(run_program(prewarm(program), origin_variables()).code, 0);
  const Outcome usual = run_program({program, "cache", "ls"}, origin_variables());
  EXPECT_THAT(usual.out, HasSubstr("  user\n"));
  EXPECT_THAT(usual.out, testing::Not(HasSubstr("  shipped\n")));
  EXPECT_THAT(usual.last_line(), testing::ContainsRegex(" tuning records, [0-9]+ of them shipped \\(--shipped\\), 18 "
                                                        "choices$"));
  EXPECT_LE(usual.last_line().size(), 90u) << "there may be thousands of each";
  const Outcome all = run_program({program, "cache", "ls", "--shipped"}, origin_variables());
  EXPECT_THAT(all.out, AllOf(HasSubstr("  user\n"), HasSubstr("  shipped\n")));
  EXPECT_THAT(all.last_line(), HasSubstr(" of them shipped, 18 choices"));
}

TEST_F(Serving, AnImportedBundleServesAsWell) {
  const std::string origin = install("origin", true), serving = install("serving", false);
  const std::string bundle = (scratch_.path() / "model.hstujit").string();
  const Outcome made = run_program(prewarm(origin, {"--json"}), origin_variables());
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string kernels = made.json()["kernels"].dump();
  const Outcome exported = run_program({origin, "cache", "export", bundle}, origin_variables());
  ASSERT_EQ(exported.code, 0) << exported.err;
  const Outcome imported = run_program({serving, "cache", "import", bundle}, serving_variables(""));
  ASSERT_EQ(imported.code, 0) << imported.err;
  EXPECT_EQ(imported.last_line(), "imported: " + kernels + " kernels, " + kernels +
                                      " new; 0 tuning records, 0 new, 0 changed; 18 choices, 18 new");
  const std::string digest = exported.out.substr(0, exported.out.find('\n'));
  EXPECT_THAT(digest, testing::StartsWith("contents: SHA-256 "));
  EXPECT_EQ(imported.out.substr(0, digest.size()), digest) << "of the contents, at both ends";
  const Outcome served = run_program(prewarm(serving, {"--json"}), serving_variables(""));
  EXPECT_EQ(served.code, 0) << served.err;
  EXPECT_EQ(choices_of(served.json()), choices_of(made.json()));
  EXPECT_EQ(run_program({serving, "cache", "verify"}, serving_variables("")).last_line(),
            "verified: " + std::to_string(made.json()["kernels"].get<int>() + 18) + " entries, 0 bad");
}

// With this NVRTC the cost model's first estimate for these masks spills.
TEST_F(Serving, TheKernelThatIsChosenUntunedSpillsNothing) {
  if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC here";
  const std::string config = scratch_.file("masks.json", R"({"version": 1, "ops": [{"name": "masks",
    "op": "hstu_attention", "heads": 1, "attn_dim": 96, "hidden_dim": 96, "max_attn_len": 128, "contextual_seq_len": 16,
    "max_seq_len": 4096, "lengths": [20, 0, 256, 130]}]})");
  const std::vector<std::string> command = {"prewarm", "--config",    config,           "--arch",
                                            "sm_90a",  "--cache-dir", scratch_.cache(), "--json"};
  const Outcome first = hstujit_tool(command);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto row = first.json()["instances"][0];
  EXPECT_EQ(row["from"], "heuristic");
  ASSERT_FALSE(row["passed_over"].empty()) << "the first estimate fits: this tests nothing";
  EXPECT_EQ(row["passed_over"][0]["reason"], "spill");
  EXPECT_EQ(row["resources"]["spill_load_bytes"].get<int>() + row["resources"]["spill_store_bytes"].get<int>(), 0);
  EXPECT_TRUE(row["resources"]["rejects"].empty()) << row["resources"];

  const Outcome second = hstujit_tool(command, {{"HSTUJIT_ON_MISS", "fail"}});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.json()["hits"], 2) << "that for short sequences, too";
  EXPECT_EQ(second.json()["instances"][0]["config"], row["config"]);
  EXPECT_EQ(second.json()["instances"][0]["why"], row["why"]);
}

}  // namespace
}  // namespace hstujit
