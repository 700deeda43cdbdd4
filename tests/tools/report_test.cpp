#include "tools/hstujit/report.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace hstujit {
namespace {

const Json kConfig = Json::parse(R"({"skeleton": "attention/sm90_forward", "block_m": 128, "block_n": 64, "stages": 2,
  "consumers": 0, "warps": 1, "schedule": "persistent", "blocks_per_sm": 1, "ping_pong": true})");

TEST(Report, ShowsAConfigOnOneLine) {
  EXPECT_EQ(config_text(kConfig), "sm90_forward 128x64 stages=2 persistent ping_pong");
  EXPECT_EQ(config_text(nullptr), "");
}

TEST(Report, MissingFieldsAreEmpty) {
  const Json row = Json::parse(R"({"name": "a", "n": 3, "yes": true, "list": [1, "b"], "none": null})");
  EXPECT_EQ(text_of(row, "name"), "a");
  EXPECT_EQ(text_of(row, "n"), "3");
  EXPECT_EQ(text_of(row, "yes"), "yes");
  EXPECT_EQ(text_of(row, "list"), "1, b");
  EXPECT_EQ(text_of(row, "none"), "");
  EXPECT_EQ(text_of(row, "absent"), "");
  EXPECT_EQ(number_text(row, "n", 2, 0.5), "1.50");
  EXPECT_EQ(number_text(row, "name", 2), "");
  EXPECT_EQ(number_of(row, "absent", 7), 7);
  EXPECT_TRUE(member(nullptr, "x").is_null());
}

TEST(Report, DevicesAreOneLine) {
  EXPECT_EQ(device_text(Json::parse(R"({"name": "NVIDIA H200", "arch": "sm_90a", "sm_count": 132})")),
            "NVIDIA H200, sm_90a, 132 SMs");
  EXPECT_EQ(device_text(nullptr), "");
}

TEST(Report, DriverVersionsAreWrittenAsCudaVersions) {
  EXPECT_EQ(driver_text(13000), "13.0");
  EXPECT_EQ(driver_text(12040), "12.4");
  EXPECT_EQ(driver_text("12.8"), "12.8");
  EXPECT_EQ(driver_text(nullptr), "");
}

TEST(Report, AFailureThatManyShareIsNamedOnce) {
  const Json rows = Json::parse(R"([
    {"name": "a", "direction": "forward", "bucket": 256, "error": {"code": "no_compiler", "message": "no NVRTC"}},
    {"name": "b", "direction": "forward", "max_seq_len": 512, "error": {"code": "no_compiler", "message": "no NVRTC"}},
    {"name": "c", "error": 0.5}, {"name": "d"}])");
  testing::internal::CaptureStderr();
  EXPECT_EQ(print_failures(rows, "error"), 2u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hstujit: a forward 256, b forward 512: no NVRTC\n");
}

TEST(Report, AFailedLaunchIsNamedByItsLength) {
  const Json rows = Json::parse(R"([
    {"name": "x", "direction": "forward", "max_seq_len": 33, "bucket": 64, "failure": {"message": "out differs"}},
    {"name": "x", "direction": "forward", "max_seq_len": 63, "bucket": 64, "failure": {"message": "out differs"}},
    {"name": "mm", "direction": "forward", "max_seq_len": null, "bucket": null, "failure": {"message": "out differs"}}])");
  testing::internal::CaptureStderr();
  EXPECT_EQ(print_failures(rows, "failure"), 3u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hstujit: x forward 33, x forward 63, mm forward: out differs\n");
}

TEST(Report, ABucketSaysWhichOfItsKernels) {
  const Json rows = Json::parse(R"([
    {"name": "a", "direction": "forward", "bucket": 256, "small_batch": true, "error": {"message": "no NVRTC"}},
    {"name": "a", "direction": "forward", "bucket": 256, "ended_early": "the budget"}])");
  EXPECT_EQ(bucket_text(rows[0]), "256 small");
  EXPECT_EQ(bucket_text(rows[1]), "256");
  testing::internal::CaptureStderr();
  EXPECT_EQ(print_failures(rows, "error"), 1u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hstujit: a forward 256 small: no NVRTC\n");
}

TEST(Report, KeysThatEndedEarlySayWhy) {
  const Json keys = Json::parse(R"([
    {"name": "a", "direction": "forward", "bucket": 256, "ended_early": "the context is gone; 3 were validated"},
    {"name": "b", "direction": "forward", "bucket": 512}])");
  EXPECT_EQ(early_ends_text(keys), "a forward 256 ended early: the context is gone; 3 were validated\n");
  EXPECT_EQ(early_ends_text(nullptr), "");
}

TEST(Report, TellsWhichWinnersStay) {
  const Json keys = {
      {{"name", "norm"}, {"direction", "forward"}, {"bucket", nullptr}},
      {{"name", "small"},
       {"direction", "forward"},
       {"bucket", nullptr},
       {"staying", {{"winner", Json::object()}, {"describe", "forward warps=8"}, {"rows", 131072}}}},
  };
  EXPECT_EQ(staying_text(keys), "small forward: launches keep the winner of a run on 131072 rows: forward warps=8\n");
  EXPECT_EQ(staying_text(nullptr), "");
}

TEST(Report, AStatusWithoutReportIsAFailure) {
  EXPECT_FALSE(take_report(HSTUJIT_NO_DEVICE, {}).ok());
  EXPECT_EQ(take_report(HSTUJIT_NO_DEVICE, {}).status().code(), Code::kNoDevice);
}

}  // namespace
}  // namespace hstujit
