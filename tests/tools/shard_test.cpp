// --shard: the launchers' variables, the division of a config, and four real processes under mpirun.
#include "tools/hstujit/shard.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/paths.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

Result<ShardOption> parse(const std::string& text, const std::map<std::string, std::string>& variables = {}) {
  return parse_shard(text, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

struct Said {
  const char* text;
  std::map<std::string, std::string> variables;
  int index;
  int count;
};

TEST(Shard, IsTheOptionsOrTheLaunchers) {
  const std::vector<Said> all = {
      {"2/8", {{"RANK", "1"}, {"WORLD_SIZE", "4"}}, 2, 8},
      {"auto", {{"RANK", "1"}, {"WORLD_SIZE", "4"}}, 1, 4},
      {"auto", {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "5"}}, 3, 5},
      {"auto", {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}, 0, 2},
      {"auto", {{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "7"}}, 6, 7},
      // torchrun in an allocation of one task per node.
      {"auto", {{"RANK", "9"}, {"WORLD_SIZE", "16"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}, 9, 16},
      {"auto/4", {{"JOB_COMPLETION_INDEX", "3"}}, 3, 4},
  };
  for (const Said& said : all) {
    const auto shard = parse(said.text, said.variables);
    ASSERT_TRUE(shard.ok()) << said.text << ": " << shard.status().message();
    EXPECT_EQ(shard->index, said.index) << said.text;
    EXPECT_EQ(shard->count, said.count) << said.text;
  }
}

TEST(Shard, WhatIsNotAllowedIsSaid) {
  for (const char* text : {"", "1", "4/4", "-1/4", "1/0", "a/b", "1/4x", "0/1048577", "auto/", "auto/x"}) {
    const auto shard = parse(text, {{"RANK", "0"}, {"WORLD_SIZE", "1"}});
    ASSERT_FALSE(shard.ok()) << text;
    EXPECT_THAT(shard.status().message(), HasSubstr("0 <= INDEX < COUNT")) << text;
  }
  for (const char* text : {"atuo", "Auto", "atuo/4"})
    EXPECT_THAT(parse(text).status().message(), HasSubstr("is not allowed, did you mean \"auto\"?; it must be"))
        << text;
  for (const char* text : {"auto/0", "auto/-1", "auto/x"}) {
    EXPECT_THAT(parse(text).status().message(), HasSubstr("INDEX/COUNT")) << text << ": no launcher is to blame";
  }
  EXPECT_EQ(parse("9/8").status().message().find("--shard"), std::string::npos) << "whoever prints it names the option";
  EXPECT_THAT(parse("auto").status().message(),
              HasSubstr("looked for RANK (torchrun), OMPI_COMM_WORLD_RANK (Open MPI)"));
  EXPECT_THAT(parse("auto/4", {{"RANK", "0"}, {"WORLD_SIZE", "2"}}).status().message(),
              HasSubstr("\"auto/4\" with WORLD_SIZE=2 of torchrun would leave parts out"));
  EXPECT_TRUE(parse("auto/2", {{"RANK", "0"}, {"WORLD_SIZE", "2"}}).ok());
  EXPECT_THAT(parse("auto", {{"JOB_COMPLETION_INDEX", "3"}}).status().message(), HasSubstr("give auto/COUNT"));
  for (const char* rank : {"4", "-1", "+1", "x"}) {
    EXPECT_THAT(parse("auto", {{"RANK", rank}, {"WORLD_SIZE", "4"}}).status().message(),
                HasSubstr(fmt::format("auto with RANK={} and WORLD_SIZE=4 of torchrun", rank)));
    EXPECT_THAT(parse("auto/4", {{"RANK", rank}}).status().message(),
                HasSubstr(fmt::format("auto/4 with RANK={} of torchrun", rank)));
  }
}

class Sharded : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_nvrtc()) GTEST_SKIP() << "no NVRTC here";
  }

  // Five keys, the first and the last of one problem.
  Scratch scratch_;
  std::string config_ = scratch_.file("ops.json", R"({"version": 1, "defaults": {"op": "hstu_attention", "heads": 2,
      "dtype": "fp32", "attn_dim": 64, "hidden_dim": 64}, "ops": [{"name": "a", "max_seq_len": [128, 256]},
      {"name": "b", "score": "relu", "max_seq_len": [128, 256, 512]}, {"name": "again", "max_seq_len": [128]}]})");

  // The labels of a report's rows.
  static std::multiset<std::string> labels_of(const nlohmann::json& report) {
    std::multiset<std::string> labels;
    for (const auto& row : report["instances"]) {
      labels.insert(row["name"].get<std::string>() + " " + std::to_string(row["bucket"].get<int>()));
    }
    return labels;
  }
};

TEST_F(Sharded, EveryKeyIsInOnePart) {
  std::multiset<std::string> all;
  for (int index = 0; index < 3; ++index) {
    const Outcome part = hstujit_tool({"prewarm", "--config", config_, "--arch", "sm_90a", "--cache-dir",
                                       scratch_.cache(), "--json", "--shard", std::to_string(index) + "/3"});
    ASSERT_EQ(part.code, 0) << part.err;
    const auto labels = labels_of(part.json());
    // Five distinct keys: no part has more than two, and what shares a key is in one part.
    EXPECT_GE(labels.size(), 1u);
    EXPECT_LE(labels.size(), 3u);
    EXPECT_EQ(labels.count("a 128"), labels.count("again 128"));
    all.merge(std::multiset<std::string>(labels));
  }
  EXPECT_EQ(all, (std::multiset<std::string>{"a 128", "a 256", "again 128", "b 128", "b 256", "b 512"}));
  const Outcome whole =
      hstujit_tool({"prewarm", "--config", config_, "--arch", "sm_90a", "--cache-dir", scratch_.cache(), "--json"});
  EXPECT_EQ(whole.json()["compiled"], 0);
}

TEST_F(Sharded, APartWithoutAKeyHasNoTable) {
  const Outcome none = hstujit_tool(
      {"prewarm", "--config", config_, "--arch", "sm_90a", "--cache-dir", scratch_.cache(), "--shard", "7/8"});
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_THAT(none.out, testing::MatchesRegex("device: [^\n]*\n\nprewarmed: 0 kernels, 0 compiled, 0 hits\n"));
}

TEST_F(Sharded, ProcessesUnderMpirunCompileEachKeyOnce) {
  const std::vector<std::string> mpirun = {"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"};
  if (run_program({"mpirun", "--version"}).code != 0) GTEST_SKIP() << "no mpirun here";
  std::vector<std::string> command = mpirun;
  for (const std::string& word : {binary_path("/bin/hstujit"), std::string("prewarm"), std::string("--config"), config_,
                                  std::string("--arch"), std::string("sm_90a"), std::string("--cache-dir"),
                                  scratch_.cache(), std::string("--shard"), std::string("auto")}) {
    command.push_back(word);
  }
  const Outcome outcome = run_program(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Outcome whole =
      hstujit_tool({"prewarm", "--config", config_, "--arch", "sm_90a", "--cache-dir", scratch_.cache(), "--json"});
  EXPECT_EQ(whole.json()["compiled"], 0) << "what a part has left out";
  EXPECT_THAT(outcome.out, HasSubstr("prewarmed: "));
}

TEST_F(Sharded, RanksWithOneFileOfChoicesSayOneChecksum) {
  if (run_program({"mpirun", "--version"}).code != 0) GTEST_SKIP() << "no mpirun here";
  const std::string file = (scratch_.path() / "choices.json").string();
  const Outcome frozen =
      hstujit_tool({"freeze", "--config", config_, "--arch", "sm_90a", "--cache-dir", scratch_.cache(), "-o", file});
  ASSERT_EQ(frozen.code, 0) << frozen.err;
  const size_t at = frozen.out.find("checksum ");
  ASSERT_NE(at, std::string::npos) << frozen.out;
  const std::string checksum = frozen.out.substr(at + 9, 64);
  // Caches of their own: what each rank would choose by itself is nobody else's business.
  const std::string one = "exec " + binary_path("/bin/hstujit prewarm --config ") + config_ +
                          " --arch sm_90a --json --cache-dir " + scratch_.cache() + "$OMPI_COMM_WORLD_RANK";
  const Outcome ranks = run_program({"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", "sh", "-c", one},
                                    {{"HSTUJIT_FROZEN", file}, {"HSTUJIT_LOG", "dispatch"}});
  ASSERT_EQ(ranks.code, 0) << ranks.err;
  size_t said = 0;
  for (size_t found = ranks.err.find(checksum); found != std::string::npos;
       found = ranks.err.find(checksum, found + 1)) {
    ++said;
  }
  EXPECT_EQ(said, 3u) << ranks.err;
}

TEST_F(Sharded, AWrongPartIsAUsageError) {
  const Outcome outcome = hstujit_tool({"prewarm", "--config", config_, "--arch", "sm_90a", "--shard", "3/3"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("0 <= INDEX < COUNT"));
}

}  // namespace
}  // namespace hstujit
