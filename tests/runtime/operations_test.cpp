// Work on whole configs against the fake driver: what reaches the launches of run, bench and tune.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "operations/configs/operation.h"
#include "runtime/launch/launcher.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

class OperationsTest : public RuntimeTest {
 protected:
  // One instance; `extra` are more of its fields.
  static Config config_of(const std::string& extra = "") {
    auto config = parse_config(R"({"version": 1, "ops": [{"name": "test", "op": "hstu_attention", "heads": 2,
        "attn_dim": 64, "hidden_dim": 64, "max_seq_len": 128, "lengths": [5, 0, 90])" +
                                   extra + "}]}",
                               "test", "");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }

  // Two instances whose kernels have one name.
  static Config two_instances() {
    auto config = parse_config(
        R"({"version": 1, "device": "sm_90a", "defaults": {"op": "hstu_attention", "heads": 2, "attn_dim": 64,
        "hidden_dim": 64, "max_seq_len": 64}, "ops": [{"name": "plain"}, {"name": "gated", "score": "relu"}]})",
        "test", "");
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *config;
  }

  static_assert(sizeof(FakeCuda::parameters) == Launcher::kMaxParameterBytes, "the fake copies that many");

  // Whether some launch had a float parameter of this value.
  static bool launched_with(float value) {
    for (size_t offset = 0; offset + sizeof(value) <= sizeof(fake().parameters); offset += sizeof(value)) {
      float parameter = 0;
      std::memcpy(&parameter, fake().parameters + offset, sizeof(parameter));
      if (parameter == value) return true;
    }
    return false;
  }
};

// A config may have tens of thousands of kernels, whose choices take a millisecond each.
TEST_F(OperationsTest, ManyShortTasksAreReportedOnceASecond) {
  const Config config = two_instances();
  const auto engine = make_engine();
  const std::vector<Task> tasks = *list_keys(*engine, config, "");
  OperationOptions options;
  std::vector<std::string> reports;
  options.progress = [&](size_t done, size_t total, const std::string& what) {
    reports.push_back(std::to_string(done) + "/" + std::to_string(total) + " " + what);
  };
  TaskProgress progress(options, "choose", 1000);
  for (int i = 0; i < 500; ++i) progress.done(tasks.front());
  EXPECT_THAT(reports, ::testing::IsEmpty()) << "what is short says nothing";
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  for (int i = 0; i < 2; ++i) progress.done(tasks.back());
  EXPECT_THAT(reports, ::testing::ElementsAre("501/1000 choose gated forward 64"));
}

TEST_F(OperationsTest, ExplainHasARowForEachKey) {
  const auto config = parse_config(R"({"version": 1, "ops": [
      {"name": "test", "op": "hstu_attention", "heads": 2, "attn_dim": 64, "hidden_dim": 64,
       "max_seq_len": [100, 128, 300]},
      {"name": "layer", "op": "stu_layer", "width": 64, "heads": 1, "attn_dim": 64, "hidden_dim": 64,
       "directions": ["forward", "backward"], "max_seq_len": [256, 512]}]})",
                                   "test", "");
  ASSERT_TRUE(config.ok()) << config.status().message();
  OperationOptions options;
  options.arch = "sm_90a";
  const OperationResult result = explain(*make_engine(), *config, options);
  ASSERT_TRUE(result.status.ok()) << result.status.message();
  const Json& rows = result.report["instances"];
  EXPECT_EQ(rows.size(), with_batch_classes(*list_keys(*make_engine(), *config, ""), *known_device("sm_90a")).size());
  EXPECT_EQ(rows[0]["max_seq_len"], 100);
  EXPECT_EQ(rows[0]["max_seq_lens"], Json({100, 128}));
  EXPECT_EQ(rows[1]["max_seq_lens"], Json({100, 128}));
  EXPECT_EQ(rows[1]["short_sequences"], true);
  EXPECT_EQ(rows[2]["max_seq_lens"], Json({300}));
  std::set<std::string> different;
  for (const Json& row : rows) {
    EXPECT_EQ(row.contains("max_seq_lens"), !row["max_seq_len"].is_null());
    EXPECT_TRUE(different.insert(row.dump()).second) << row["name"];
  }
  // A device with room for no tile of a GEMM: each step that lacks a kernel is named once.
  options.arch = (folder_->path() / "narrow.json").string();
  std::ofstream(options.arch) << R"({"name": "Narrow", "arch": "sm_80", "sm_count": 10, "shared_memory": 20000})";
  std::set<std::string> failed;
  const OperationResult lacking = explain(*make_engine(), *config, options);
  for (const Json& row : lacking.report["instances"]) {
    if (!row.contains("error")) continue;
    EXPECT_TRUE(failed.insert(row["name"].get<std::string>() + row["direction"].dump()).second) << row["name"];
  }
  EXPECT_FALSE(failed.empty());
}

TEST_F(OperationsTest, TheConfigsAlphaIsLaunched) {
  const Config config = config_of(R"(, "alpha": 0.34375)");
  ASSERT_TRUE(run(make_engine(), config, {}).status.ok());
  EXPECT_EQ(fake().launches, 1);
  EXPECT_TRUE(launched_with(0.34375F));
  fake().reset();
  // The fake GPU writes no output, so that no candidate passes its check.
  EXPECT_EQ(tune(*make_engine(), config, {}).status.code(), Code::kCheckFailed);
  EXPECT_GE(fake().launches, 1);
  EXPECT_TRUE(launched_with(0.34375F));
  fake().reset();
  ASSERT_TRUE(run(make_engine(), config_of(), {}).status.ok());
  EXPECT_TRUE(launched_with(1.0F / 64)) << "left out: 1 / attn_dim";
}

TEST_F(OperationsTest, UploadsHaveArrivedBeforeALaunch) {
  ASSERT_TRUE(run(make_engine(), config_of(), {}).status.ok());
  EXPECT_EQ(tune(*make_engine(), config_of(), {}).status.code(), Code::kCheckFailed);
  EXPECT_GE(fake().launches, 2);
  EXPECT_EQ(fake().races, 0);
}

TEST_F(OperationsTest, LaunchesAreComparedWithTheFirst) {
  OperationOptions options;
  options.repeats = 4;
  const OperationResult equal = run(make_engine(), config_of(), options);
  ASSERT_TRUE(equal.status.ok()) << equal.status.message();
  EXPECT_EQ(fake().launches, 4);
  const Json& row = equal.report["runs"][0];
  EXPECT_EQ(row["repeats"], 4);
  EXPECT_EQ(row["repeats_equal"], 4);
  EXPECT_FALSE(row.contains("repeats_differ"));

  fake().reset();
  EXPECT_FALSE(run(make_engine(), config_of(), {}).report["runs"][0].contains("repeats")) << "one launch";
  EXPECT_EQ(fake().launches, 1);
}

TEST_F(OperationsTest, ADifferenceIsReportedAndFailsWhereResultsAreToBeDeterministic) {
  OperationOptions options;
  options.repeats = 4;
  const auto run_unsteady = [&] {
    fake().reset();
    fake().unsteady_from = 3;
    return run(make_engine(), config_of(), options);
  };
  const OperationResult reported = run_unsteady();
  EXPECT_TRUE(reported.status.ok()) << reported.status.message();
  const Json& row = reported.report["runs"][0];
  EXPECT_EQ(row["repeats"], 4);
  EXPECT_EQ(row["repeats_equal"], 2);
  EXPECT_EQ(row["repeats_differ"], Json({{"out", 2}}));
  EXPECT_FALSE(row.contains("failure"));

  values_["HSTUJIT_DETERMINISTIC"] = "1";
  const OperationResult failed = run_unsteady();
  EXPECT_EQ(failed.status.code(), Code::kCheckFailed);
  EXPECT_THAT(failed.status.message(), ::testing::HasSubstr("test forward 128"));
  EXPECT_THAT(failed.status.message(),
              ::testing::HasSubstr("2 of 4 launches on the same inputs gave other bytes than the first (out in 2)"));
  EXPECT_EQ(failed.report["runs"][0]["failure"]["code"], "check_failed");
  EXPECT_EQ(failed.report["runs"][0]["repeats_equal"], 2);
}

TEST_F(OperationsTest, RepeatedLaunchesHaveOtherWorkAroundThem) {
  OperationOptions options;
  options.repeats = 2;
  ASSERT_TRUE(run(make_engine(), config_of(), options).status.ok());
  std::string steps;  // p: poison, f: some 64 MB, L: a launch
  for (unsigned i = 0; i < fake().step_count; ++i) {
    const FakeStep& step = fake().steps[i];
    steps += step.kernel[0] != '\0' ? 'L' : step.byte == kPoison ? 'p' : step.bytes > (50U << 20) ? 'f' : '?';
  }
  EXPECT_EQ(steps.substr(0, 4), "Lpff");
  EXPECT_EQ(steps.substr(4, 2), "Lf") << steps << ": before and after it";
}

TEST_F(OperationsTest, CandidatesRunInTheWorkersProcess) {
  values_.erase("HSTUJIT_WORKER");
  const OperationResult result = tune(*make_engine(), config_of(), {});
  // The worker has a fake driver of its own, which writes no output either.
  EXPECT_EQ(result.status.code(), Code::kCheckFailed) << result.status.message();
  EXPECT_EQ(fake().launches, 0);
  EXPECT_THAT(log_, ::testing::Contains(::testing::HasSubstr("hstujit-worker")));
}

TEST_F(OperationsTest, AMissingWorkerIsNamed) {
  values_["HSTUJIT_WORKER"] = "/nowhere/hstujit-worker";
  const OperationResult result = tune(*make_engine(), config_of(), {});
  EXPECT_EQ(result.status.code(), Code::kNotFound);
  EXPECT_THAT(result.status.message(), ::testing::HasSubstr("/nowhere/hstujit-worker"));
}

TEST_F(OperationsTest, InstancesWithOneKernelNameKeepTheirFilesApart) {
  OperationOptions options;
  options.directory = (folder_->path() / "emitted").string();
  const OperationResult both = emit(*make_engine(), two_instances(), options);
  ASSERT_TRUE(both.status.ok()) << both.status.message();
  const Json& rows = both.report["instances"];
  ASSERT_EQ(rows.size(), 2u);
  for (const Json& row : rows) {
    const std::filesystem::path source = row["files"]["source"].get<std::string>();
    EXPECT_TRUE(std::filesystem::exists(source)) << source;
    EXPECT_EQ(source.parent_path(), std::filesystem::path(options.directory) / row["name"].get<std::string>());
  }
  options.op_name = "gated";
  const OperationResult one = emit(*make_engine(), two_instances(), options);
  const std::filesystem::path source = one.report["instances"][0]["files"]["source"].get<std::string>();
  EXPECT_EQ(source.parent_path(), options.directory) << "one instance needs no folder";
}

TEST_F(OperationsTest, NothingIsEmittedWhereTheFolderOfAnInstanceCannotBeMade) {
  OperationOptions options;
  options.directory = folder_->path().string();
  ASSERT_TRUE(write_file_atomically(folder_->path() / "plain", "a file").ok());
  const OperationResult result = emit(*make_engine(), two_instances(), options);
  EXPECT_EQ(result.status.code(), Code::kInvalidArgument);
  EXPECT_THAT(result.status.message(), ::testing::StartsWith("directory: cannot "));
  EXPECT_THAT(result.status.message(), ::testing::HasSubstr((folder_->path() / "plain").string()));
  EXPECT_TRUE(result.report.empty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_->path()), {}), 1);
}

TEST_F(OperationsTest, DoctorNamesTheNvrtcThatACompileWouldUse) {
  EXPECT_EQ(doctor(*make_engine())["nvrtc"], Json({{"ok", true}, {"path", "/a/libnvrtc.so.13"}, {"version", "13.0"}}));
  compiler_ = nullptr;
  values_["HSTUJIT_COMPILER_LIBRARY"] = "/nowhere/libhstujit_compiler.so";
  const Json missing = doctor(*make_engine())["nvrtc"];
  EXPECT_EQ(missing["ok"], false);
  EXPECT_THAT(missing["problem"].get<std::string>(), ::testing::HasSubstr("/nowhere/libhstujit_compiler.so"));
}

TEST(TimingData, HasTheAlphaThatIsAskedFor) {
  const auto spec = parse_op_spec({{"op", "hstu_attention"}, {"attn_dim", 16}, {"hidden_dim", 16}}, "");
  ASSERT_TRUE(spec.ok()) << spec.status().message();
  // Few rows, and more than the distinct ones of timing data.
  for (const int64_t sequences : {3, 3000}) {
    const Lengths lengths{std::vector<int64_t>(static_cast<size_t>(sequences), 10), {}, 16};
    const auto data = make_timing_data(*spec, Direction::kForward, lengths, 1, 0.25);
    ASSERT_TRUE(data.ok());
    EXPECT_EQ(data->values[static_cast<size_t>(find_argument(data->signature, "alpha"))].scalar, 0.25);
  }
}

}  // namespace
}  // namespace hstujit::test
