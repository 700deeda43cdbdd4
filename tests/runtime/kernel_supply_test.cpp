// Kernels of the cost model's estimates: those that spill are passed over, and that is remembered.
#include "runtime/dispatch/kernel_supply.h"

#include <latch>

#include "operations/configs/operation.h"
#include "runtime/engine/generator_keys.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kSupplyBucket = 128;
constexpr const char* kSpills = R"({"registers": 168, "spill_store_bytes": 4, "spill_load_bytes": 4})";

class KernelSupplyTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    use(R"({"version": 1, "device": "H200", "ops": [{"name": "test", "op": "hstu_attention",
        "heads": 2, "attn_dim": 64, "hidden_dim": 64, "lengths": [5, 0, 90], "max_seq_len": 128}]})");
  }

  void use(const char* text) {
    auto config = parse_config(text, "test", "");
    ASSERT_TRUE(config.ok()) << config.status().message();
    config_ = std::move(*config);
    estimates_ = search_space(*spec(), Direction::kForward, device(), heuristic_size(kSupplyBucket)).candidates;
    ASSERT_GT(estimates_.size(), 8u);
  }

  const OpSpecPtr& spec() const { return config_.instances[0].spec; }
  const DeviceSpec& device() const { return *config_.device; }
  std::string estimate(size_t i) const { return key_text(estimates_[i].config); }
  Result<SuppliedKernel> supply(const EnginePtr& engine, Supply how = Supply::kMake) const {
    HSTUJIT_ASSIGN_OR_RETURN(KernelChoice choice,
                             choose_kernel(*engine, *spec(), Direction::kForward, device(), kSupplyBucket));
    return supply_kernel(*engine, spec(), Direction::kForward, device(), kSupplyBucket, {}, std::move(choice), how);
  }
  // Supplies the kernel in a process of its own.
  SuppliedKernel supplied() {
    const auto kernel = supply(make_engine());
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    return kernel.ok() ? *kernel : SuppliedKernel{};
  }
  Json explained() {
    const OperationResult result = explain(*make_engine(), config_, {});
    EXPECT_TRUE(result.status.ok()) << result.status.message();
    return result.report["instances"][0];
  }

  Config config_;
  std::vector<Candidate> estimates_;
};

TEST_F(KernelSupplyTest, AnEstimateThatSpillsIsPassedOverOnceForAllProcesses) {
  compiler_->resources_of[estimate(0)] = kSpills;
  compiler_->resources_of[estimate(1)] = R"({"rejects": [{"reason": "wgmma_serialized", "detail": "(C7512) slow"}]})";
  const SuppliedKernel first = supplied();
  EXPECT_EQ(key_text(first.choice.config), estimate(2));
  EXPECT_EQ(first.request.config, first.choice.config);
  EXPECT_FALSE(first.hit);
  EXPECT_EQ(compiler_->compiles, 3);

  values_["HSTUJIT_ON_MISS"] = "fail";
  const SuppliedKernel second = supplied();
  EXPECT_EQ(key_text(second.choice.config), estimate(2));
  EXPECT_TRUE(second.hit);
  EXPECT_EQ(compiler_->compiles, 3);
  EXPECT_EQ(second.choice.source, ChoiceSource::kHeuristic);
  EXPECT_FALSE(second.choice.tuned);

  const Json row = explained();
  EXPECT_EQ(row["from"], "heuristic");
  EXPECT_EQ(row["cache"]["hit"], true);
  EXPECT_THAT(row["why"].get<std::string>(),
              HasSubstr("the cost model's fastest estimate after " + describe(estimates_[0].config) +
                        " (spill: 8 bytes of registers spill to memory), " + describe(estimates_[1].config) +
                        " (wgmma_serialized: (C7512) slow)"));
  ASSERT_EQ(row["passed_over"].size(), 2u);
  EXPECT_EQ(row["passed_over"][0]["reason"], "spill");
  EXPECT_EQ(RecordedConfig(row["passed_over"][0]["config"].dump()), RecordedConfig(estimate(0)));
}

TEST_F(KernelSupplyTest, WhatItWasPassedOverForIsSeenWithoutTheNoteToo) {
  compiler_->resources_of[estimate(0)] = kSpills;
  supplied();
  std::filesystem::remove_all(choices_root(cache_dir()));
  const SuppliedKernel again = supplied();
  EXPECT_EQ(key_text(again.choice.config), estimate(1));
  EXPECT_TRUE(again.hit);
  EXPECT_EQ(compiler_->compiles, 2) << "the metadata of both kernels say it";
}

TEST_F(KernelSupplyTest, AnEstimateThatDoesNotCompileIsTriedOnce) {
  compiler_->failing = {estimate(0)};
  EXPECT_EQ(key_text(supplied().choice.config), estimate(1));
  EXPECT_EQ(compiler_->compiles, 2);
  const SuppliedKernel second = supplied();
  EXPECT_EQ(key_text(second.choice.config), estimate(1));
  EXPECT_EQ(compiler_->compiles, 2);
  ASSERT_EQ(second.choice.passed_over.size(), 1u);
  EXPECT_EQ(second.choice.passed_over[0].reason, "compile");
  EXPECT_EQ(second.choice.passed_over[0].detail, "the source of " + estimate(0) + " is bad");
}

TEST_F(KernelSupplyTest, AFewAreTriedAndTheBestEstimateStaysWhereAllSpill) {
  compiler_->resources = kSpills;
  const SuppliedKernel first = supplied();
  EXPECT_EQ(key_text(first.choice.config), estimate(0));
  EXPECT_EQ(compiler_->compiles, 8);
  EXPECT_THAT(first.choice.why, HasSubstr("none of which is without fault"));
  EXPECT_TRUE(supplied().hit);
  EXPECT_EQ(compiler_->compiles, 8);
}

TEST_F(KernelSupplyTest, WhereAllSpillTheOneThatSpillsLeastIsTaken) {
  compiler_->resources = kSpills;
  compiler_->resources_of[estimate(0)] = R"({"spill_store_bytes": 160, "spill_load_bytes": 160})";
  compiler_->resources_of[estimate(2)] = R"({"spill_store_bytes": 2, "spill_load_bytes": 4})";
  const SuppliedKernel first = supplied();
  EXPECT_EQ(key_text(first.choice.config), estimate(2));
  EXPECT_EQ(key_text(first.request.config), estimate(2));
  EXPECT_EQ(first.choice.passed_over.size(), 8u);
  EXPECT_THAT(first.choice.why, HasSubstr("none of which is without fault"));
  EXPECT_EQ(key_text(supplied().choice.config), estimate(2));
  EXPECT_EQ(compiler_->compiles, 8);
}

// The first estimates for this product are of the same tile, in another order or with another stage, and another tile
// does not spill.
TEST_F(KernelSupplyTest, EstimatesThatSpillAlikeAreNotTried) {
  use(R"({"version": 1, "device": "A100", "ops": [{"name": "test", "op": "addmm", "k": 2048, "n": 512,
      "input": "matrix", "transpose_mat2": true, "rows": 128}]})");
  std::vector<size_t> tried;
  for (size_t i = 0; i < estimates_.size() && tried.size() < 4; ++i) {
    const auto is_alike = [&](size_t j) { return same_registers(estimates_[i].config, estimates_[j].config); };
    if (std::ranges::none_of(tried, is_alike)) tried.push_back(i);
  }
  ASSERT_EQ(tried.size(), 4u);
  ASSERT_GT(tried.back(), 3u);
  compiler_->resources = kSpills;
  compiler_->resources_of[estimate(tried.back())] = "{}";
  const SuppliedKernel kernel = supplied();
  EXPECT_EQ(key_text(kernel.choice.config), estimate(tried.back()));
  EXPECT_EQ(compiler_->compiles, 4);
  EXPECT_EQ(kernel.choice.passed_over.size(), 3u);
}

TEST_F(KernelSupplyTest, WhereNoneCompilesTheFirstFailureIsSaid) {
  for (size_t i = 0; i < estimates_.size(); ++i) compiler_->failing.insert(estimate(i));
  const Status status = supply(make_engine()).status();
  EXPECT_EQ(status.code(), Code::kCompileFailed);
  EXPECT_THAT(status.message(), HasSubstr("the source of " + estimate(0)));
  EXPECT_EQ(compiler_->compiles, 8);
  compiler_->failing.clear();
  EXPECT_EQ(key_text(supplied().choice.config), estimate(0)) << "nothing was remembered";
}

TEST_F(KernelSupplyTest, AClassWhoseKernelsDoNotCompileHasTheOneOfAllBatches) {
  const EnginePtr engine = make_engine();
  const ProblemBucket all{8192}, of_class{8192, BatchClass::kShortSequences};
  const auto choose = [&](const ProblemBucket& bucket) {
    return choose_kernel(*engine, *spec(), Direction::kForward, device(), bucket).value();
  };
  const std::string of_all = key_text(choose(all).config);
  for (const Candidate& candidate :
       search_space(*spec(), Direction::kForward, device(), heuristic_size(of_class)).candidates)
    if (key_text(candidate.config) != of_all) compiler_->failing.insert(key_text(candidate.config));
  const auto kernel =
      supply_kernel(*engine, spec(), Direction::kForward, device(), of_class, {}, choose(of_class), Supply::kMake);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(key_text(kernel->choice.config), of_all);
  EXPECT_EQ(compiler_->compiles, 9) << "those that failed, and this one";
}

TEST_F(KernelSupplyTest, AnotherFailureEndsTheTrying) {
  compiler_->failure = Status(Code::kNoCompiler, "no NVRTC");
  EXPECT_EQ(supply(make_engine()).status().code(), Code::kNoCompiler);
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(KernelSupplyTest, UnderFailAKernelThatSpillsIsBetterThanNone) {
  compiler_->resources_of[estimate(0)] = kSpills;
  const CompileRequest request{spec(), Direction::kForward, estimates_[0].config, device(), false};
  ASSERT_TRUE(make_engine()->kernels().get(request, true).ok());
  values_["HSTUJIT_ON_MISS"] = "fail";
  const SuppliedKernel kernel = supplied();
  EXPECT_EQ(key_text(kernel.choice.config), estimate(0));
  EXPECT_EQ(compiler_->compiles, 1);
  values_.erase("HSTUJIT_ON_MISS");
  EXPECT_EQ(key_text(supplied().choice.config), estimate(1)) << "nor is it remembered as the choice";
}

TEST_F(KernelSupplyTest, ThreadsWithOneColdKeyCompileEachEstimateOnce) {
  compiler_->resources_of[estimate(0)] = kSpills;
  compiler_->delay = std::chrono::milliseconds(50);
  const EnginePtr engine = make_engine();
  constexpr int kThreads = 16;
  std::latch start(kThreads);
  std::atomic<int> good{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      const auto kernel = supply(engine);
      good += kernel.ok() && key_text(kernel->choice.config) == estimate(1) ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(good, kThreads);
  EXPECT_EQ(compiler_->compiles, 2);
}

TEST_F(KernelSupplyTest, AnOpIsPreparedWithTheKernelThatIsChosen) {
  compiler_->resources_of[estimate(0)] = kSpills;
  auto op = Op::create(make_engine(), {config_.instances[0], Direction::kForward, Backend::kCuda, {}, {}});
  ASSERT_TRUE(op.ok());
  // The fake device is another one, whose own first estimate may differ: whatever it is, it spills.
  compiler_->resources = kSpills;
  ASSERT_TRUE((*op)->prepare(kSupplyBucket, 0).ok());
  EXPECT_GE(compiler_->compiles, 4);
  EXPECT_THAT(log_, Contains(HasSubstr("passed_over")));
}

TEST_F(KernelSupplyTest, AnotherCostModelChoosesForItself) {
  compiler_->resources_of[estimate(0)] = kSpills;
  EXPECT_EQ(key_text(supplied().choice.config), estimate(1));
  EXPECT_EQ(compiler_->compiles, 2);
  const EnginePtr engine = make_engine();
  auto noted = engine->tuning().noted_choice(tuning_key(*spec(), Direction::kForward, device(), kSupplyBucket),
                                             choice_generator(*spec(), Direction::kForward));
  ASSERT_TRUE(noted.has_value());
  EXPECT_EQ(noted->estimates, choice_estimates(*spec(), Direction::kForward));
  noted->estimates = "of another cost model";
  noted->config = estimate(3);
  engine->tuning().note_choice(*noted);
  EXPECT_EQ(key_text(supplied().choice.config), estimate(1)) << "estimates are looked at anew";
  // A winner that was measured elsewhere is not an estimate.
  noted->source = ChoiceSource::kNearDevice;
  engine->tuning().note_choice(*noted);
  EXPECT_EQ(key_text(supplied().choice.config), estimate(3));
}

TEST_F(KernelSupplyTest, ATunedWinnerComesBeforeWhatWasRemembered) {
  compiler_->resources_of[estimate(0)] = kSpills;
  supplied();
  const EnginePtr engine = make_engine();
  TuningRecord record;
  record.key = tuning_key(*spec(), Direction::kForward, device(), kSupplyBucket);
  record.workload = "batch";
  record.timed = {{estimate(3), "batch", "source", 10, 0.1}};
  ASSERT_TRUE(engine->tuning().add(record).ok());
  const auto kernel = supply(engine);
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(key_text(kernel->choice.config), estimate(3));
  EXPECT_EQ(kernel->choice.source, ChoiceSource::kTuning);
  EXPECT_TRUE(kernel->choice.tuned);
}

TEST_F(KernelSupplyTest, WhatAVariableForcesIsNotRemembered) {
  compiler_->resources_of[estimate(0)] = kSpills;
  supplied();
  values_["HSTUJIT_OVERRIDE"] = estimate(3);
  const SuppliedKernel forced = supplied();
  EXPECT_EQ(key_text(forced.choice.config), estimate(3));
  EXPECT_EQ(forced.choice.source, ChoiceSource::kOverride);
  values_.erase("HSTUJIT_OVERRIDE");
  const SuppliedKernel after = supplied();
  EXPECT_EQ(key_text(after.choice.config), estimate(1));
  EXPECT_TRUE(after.hit) << "what was noted before is there yet";

  // A bundle of an earlier library.
  const EnginePtr engine = make_engine();
  engine->tuning().keep_choice({tuning_key(*spec(), Direction::kForward, device(), kSupplyBucket),
                                choice_generator(*spec(), Direction::kForward),
                                estimate(3),
                                ChoiceSource::kOverride,
                                "",
                                {},
                                /*exported=*/true});
  const auto kernel = supply(engine);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  EXPECT_EQ(key_text(kernel->choice.config), estimate(1));
}

TEST_F(KernelSupplyTest, LookingCompilesAndWritesNothing) {
  compiler_->resources_of[estimate(0)] = kSpills;
  const auto missing = supply(make_engine(), Supply::kLook);
  ASSERT_TRUE(missing.ok());
  EXPECT_EQ(missing->binary, nullptr);
  EXPECT_EQ(compiler_->compiles, 0);
  EXPECT_FALSE(std::filesystem::exists(cache_dir()));
  supplied();
  const auto found = supply(make_engine(), Supply::kLook);
  ASSERT_TRUE(found.ok());
  ASSERT_NE(found->binary, nullptr);
  EXPECT_EQ(key_text(found->choice.config), estimate(1));
}

}  // namespace
}  // namespace hstujit::test
