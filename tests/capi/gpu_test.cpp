// Kernels on a GPU through the C API, against the float64 reference. Skipped where there is no GPU or no compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "compiler/support/files.h"
#include "hstujit/hstujit.hpp"

namespace {

using nlohmann::json;

class GpuTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = std::make_unique<hstujit::TempDir>(hstujit::TempDir::create().value());
    cache_ = folder_->path().string();
    hstujit_context_options options = HSTUJIT_INIT(hstujit_context_options);
    options.cache_dir = cache_.c_str();
    options.cache_path = "";
    context_ = std::make_unique<hstujit::api::Context>(options);
    const json doctor = json::parse(context_->doctor());
    if (doctor["devices"].empty()) GTEST_SKIP() << "no GPU: " << doctor["driver"].value("problem", "none found");
    if (!doctor["compiler"]["ok"]) GTEST_SKIP() << "no compiler: " << doctor["compiler"].value("problem", "");
    if (!doctor["nvrtc"]["ok"]) GTEST_SKIP() << "no NVRTC: " << doctor["nvrtc"].value("problem", "");
  }

  std::unique_ptr<hstujit::TempDir> folder_;
  std::string cache_;
  std::unique_ptr<hstujit::api::Context> context_;
};

TEST_P(GpuTest, AgreesWithTheReference) {
  json instance = {{"name", "case"},
                   {"op", "hstu_attention"},
                   {"heads", 2},
                   {"attn_dim", 64},
                   {"hidden_dim", 64},
                   {"max_seq_len", {100, 600}},
                   {"lengths", {0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 0, 600, 3, 7, 256, 257}}};
  instance.update(json::parse(GetParam()));
  const json text = {{"version", 1}, {"ops", {instance}}};
  const auto config = hstujit::api::Config::parse(text.dump());
  hstujit_run_options options = HSTUJIT_INIT(hstujit_run_options);
  options.check = 1;
  options.seed = 7;
  hstujit::api::Text report;
  const hstujit_status status = hstujit_run(context_->get(), config.get(), &options, report.out());
  EXPECT_EQ(status, HSTUJIT_OK) << hstujit_last_error() << "\n" << report.str();
}

INSTANTIATE_TEST_SUITE_P(
    HstuAttention, GpuTest,
    ::testing::Values(R"({})", R"({"dtype": "fp16"})", R"({"causal": false})", R"({"num_targets": true})",
                      R"({"num_targets": true, "target_group_size": 4})", R"({"max_attn_len": 50})",
                      R"({"max_attn_len": 50, "min_full_attn_seq_len": 30, "num_targets": true})",
                      R"({"contextual_seq_len": 6})",
                      R"({"contextual_seq_len": 6, "max_attn_len": 40, "num_targets": true})",
                      R"({"sla_k1": 40, "sla_k2": 16})", R"({"causal": false, "max_attn_len": -1})",
                      R"({"attn_dim": 128, "hidden_dim": 128})", R"({"attn_dim": 32, "hidden_dim": 64})",
                      R"({"attn_dim": 256, "hidden_dim": 256, "heads": 1})", R"({"attn_dim": 72, "hidden_dim": 40})",
                      R"({"score": "relu"})", R"({"score": "gelu"})", R"({"offsets_dtype": "int32"})",
                      R"({"heads": 1, "attn_dim": 8, "hidden_dim": 8})"));

TEST_F(GpuTest, TuningFindsAWinnerThatAgrees) {
  const auto config = hstujit::api::Config::parse(R"({"version": 1, "ops": [{"name": "case", "op": "hstu_attention",
      "heads": 4, "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 256,
      "lengths": {"distribution": "uniform", "low": 0.4, "high": 1.0, "batch": 256}}]})");
  hstujit_run_options options = HSTUJIT_INIT(hstujit_run_options);
  options.budget_s = 10;
  options.check = 1;
  options.max_rows = 4000;
  hstujit::api::Text report;
  ASSERT_EQ(hstujit_tune(context_->get(), config.get(), &options, report.out()), HSTUJIT_OK) << hstujit_last_error();
  const json key = json::parse(report.str())["keys"][0];
  EXPECT_GT(key["timed"], 1);
  EXPECT_GT(key["winner_us"], 0);
  hstujit::api::Text checked;
  EXPECT_EQ(hstujit_run(context_->get(), config.get(), &options, checked.out()), HSTUJIT_OK) << hstujit_last_error();
}

}  // namespace
