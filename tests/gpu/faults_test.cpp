// Tuning on a real GPU with candidates that are faulty on purpose: each is rejected with its reason, and the rest goes
// on. Needs a GPU and NVRTC; skips without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/kernel_config.h"
#include "tests/paths.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using Json = nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Fault {
  const char* name;
  const char* reason;
  const char* detail;
};

// In the order of the cost model's list, after the heuristic's config.
constexpr Fault kFaults[] = {
    {"illegal_access", "crashed", "illegal"},
    {"no_result", "wrong_result", "out has elements that are not numbers or were not written"},
    {"infinite_loop", "timeout", "20"},
    {"shared_memory", "compile", "shared"},
    {"killed_compile", "compile_killed", "signal 9"},
};

class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Json doctor = hstujit_tool({"doctor", "--json", "--cache-dir", scratch_.cache()}).json();
    if (doctor["devices"].empty()) GTEST_SKIP() << "no GPU";
    if (!doctor["nvrtc"]["ok"]) GTEST_SKIP() << "no NVRTC";
    nvrtc_ = doctor["nvrtc"]["path"];
    const Json explained =
        hstujit_tool({"explain", "--config", config_, "--json", "--cache-dir", scratch_.cache()}).json();
    for (const Json& listed : explained.at("instances").at(0).at("search_space").at("best_estimates")) {
      const auto config = parse_kernel_config(nlohmann::ordered_json::parse(listed.at("config").dump()));
      ASSERT_TRUE(config.ok()) << config.status().message();
      candidates_.push_back(key_text(*config));
    }
    ASSERT_GT(candidates_.size(), std::size(kFaults));
  }

  std::string key_of(const Json& config) const {
    return key_text(*parse_kernel_config(nlohmann::ordered_json::parse(config.dump())));
  }

  Scratch scratch_;
  std::string config_ = scratch_.config(R"("num_targets": 2)");
  std::string nvrtc_;
  std::vector<std::string> candidates_;
};

TEST_F(FaultsTest, EachCostsOneCandidate) {
  std::string plan;
  for (size_t i = 0; i < std::size(kFaults); ++i)
    plan += std::string(kFaults[i].name) + " " + candidates_[i + 1] + "\n";
  const Variables faulty = {{"HSTUJIT_NVRTC", binary_path("/test_libraries/libhstujit_faulty_nvrtc.so")},
                            {"FAULTY_NVRTC_REAL", nvrtc_},
                            {"FAULTY_NVRTC_PLAN", scratch_.file("plan", plan)}};
  const Outcome outcome = hstujit_tool(
      {"tune", "--config", config_, "--budget", "120s", "--json", "--cache-dir", scratch_.cache()}, faulty);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const Json report = outcome.json();
  ASSERT_TRUE(report.contains("keys")) << outcome.out << outcome.err;
  const Json& key = report.at("keys").at(0);
  ASSERT_EQ(key.at("outcome"), "tuned") << key.dump(1);
  EXPECT_EQ(key.at("restarts"), 2) << "the crash and the loop each cost the worker";
  const std::string winner = key_of(key.at("winner"));
  for (size_t i = 0; i < std::size(kFaults); ++i) {
    const Fault& fault = kFaults[i];
    SCOPED_TRACE(fault.name);
    EXPECT_NE(winner, candidates_[i + 1]);
    const Json* found = nullptr;
    for (const Json& rejected : key.at("rejected")) {
      if (key_of(rejected.at("config")) == candidates_[i + 1]) found = &rejected;
    }
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->at("reason"), fault.reason) << found->dump();
    EXPECT_THAT(found->at("detail").get<std::string>(), HasSubstr(fault.detail));
  }
  // The winner that was kept runs, and is right.
  const Outcome checked = hstujit_tool({"run", "--config", config_, "--check", "--cache-dir", scratch_.cache()});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

}  // namespace
}  // namespace hstujit
