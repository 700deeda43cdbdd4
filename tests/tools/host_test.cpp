// run and bench on the host backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/paths.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::HasSubstr;

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
                                       binary_path("/bin/hstujit"), run[0], run[1], run[2], run[3], run[4]});
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
  const Outcome refused = run_program({"/bin/sh", "-c", R"(ulimit -v 4000000; exec "$0" "$@")",
                                       binary_path("/bin/hstujit"), "run", "--config", config, "--backend", "host"});
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
      run_program({"/bin/sh", "-c", R"(ulimit -v 8000000; exec "$0" "$@")", binary_path("/bin/hstujit"), "run",
                   "--config", config, "--backend", "host", "--check", "--json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("x forward: "));
  EXPECT_THAT(outcome.err, HasSubstr(" bytes to generate; this process may have (ulimit -v) 8.19e+09"));
  const auto runs = outcome.json()["runs"];
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0]["agrees"], true);
  EXPECT_EQ(runs[2]["agrees"], true);
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

}  // namespace
}  // namespace hstujit
