// Forward and backward of an instance, compiled side by side.
#include <thread>

#include "runtime/dispatch/miss_record.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

class CompileAheadTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core compiles one kernel after the other";
    values_["HSTUJIT_COMPILE_JOBS"] = "2";
    compiler_->delay = std::chrono::milliseconds(200);
  }
  static Instance instance_of(const Json& directions) {
    auto instance = parse_instance({{"name", "one"},
                                    {"op", "hstu_attention"},
                                    {"dtype", "fp32"},  // one kernel for all batches
                                    {"heads", 4},
                                    {"attn_dim", 64},
                                    {"hidden_dim", 64},
                                    {"max_seq_len", 1024},
                                    {"directions", directions}},
                                   "test", "");
    EXPECT_TRUE(instance.ok()) << instance.status().message();
    return *instance;
  }
  static std::unique_ptr<Op> op_of(const EnginePtr& engine, const Instance& instance, Direction direction) {
    auto op = Op::create(engine, {instance, direction, Backend::kCuda, LengthMode::kPow2, {}});
    EXPECT_TRUE(op.ok()) << op.status().message();
    return std::move(*op);
  }
};

TEST_F(CompileAheadTest, TheOtherDirectionOfAnInstanceIsUnderWayWhenItIsAskedFor) {
  const auto engine = make_engine();
  const Instance instance = instance_of({"forward", "backward"});
  const auto forward = op_of(engine, instance, Direction::kForward);
  const auto backward = op_of(engine, instance, Direction::kBackward);
  ASSERT_TRUE(forward->prepare(1024, 0).ok());
  ASSERT_TRUE(backward->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 2);
  EXPECT_EQ(compiler_->max_at_once, 2);
}

TEST_F(CompileAheadTest, WhatTheInstanceDoesNotListIsNotCompiled) {
  const auto engine = make_engine();
  ASSERT_TRUE(op_of(engine, instance_of({"forward"}), Direction::kForward)->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 1);
}

// A caller that knows more than the instance says: the first launch of a process that trains.
TEST_F(CompileAheadTest, ADerivativeThatFollowsIsUnderWayWhenItIsAskedFor) {
  const auto engine = make_engine();
  const Instance instance = instance_of({"forward"});
  const auto forward = op_of(engine, instance, Direction::kForward);
  ASSERT_TRUE(forward->prepare(1024, 0, /*derivative_follows=*/true).ok());
  ASSERT_TRUE(op_of(engine, instance, Direction::kBackward)->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 2);
  EXPECT_EQ(compiler_->max_at_once, 2);
}

TEST_F(CompileAheadTest, ADerivativeIsCompiledWhereForwardIsCached) {
  const auto engine = make_engine();
  const Instance instance = instance_of({"forward"});
  ASSERT_TRUE(op_of(engine, instance, Direction::kForward)->prepare(1024, 0).ok());
  ASSERT_TRUE(op_of(engine, instance, Direction::kForward)->prepare(1024, 0, true).ok());  // waits when it goes
  EXPECT_EQ(compiler_->compiles, 2);
}

TEST_F(CompileAheadTest, AProgramHasItsDerivativesStepsCompiled) {
  const auto engine = make_engine();
  auto instance = parse_instance({{"name", "layer"},
                                  {"op", "stu_layer"},
                                  {"heads", 2},
                                  {"attn_dim", 64},
                                  {"hidden_dim", 64},
                                  {"width", 128},
                                  {"max_seq_len", 1024},
                                  {"directions", {"forward"}}},
                                 "test", "");
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  {
    const auto forward = op_of(engine, *instance, Direction::kForward);
    ASSERT_TRUE(forward->prepare(1024, 0, true).ok());
  }
  const int compiles = compiler_->compiles;
  ASSERT_TRUE(op_of(engine, *instance, Direction::kBackward)->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, compiles);
}

TEST_F(CompileAheadTest, ADirectionWithoutADerivativeHasNone) {
  const auto engine = make_engine();
  ASSERT_TRUE(op_of(engine, instance_of({"backward"}), Direction::kBackward)->prepare(1024, 0, true).ok());
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(CompileAheadTest, AnOpThatGoesWaitsForIt) {
  const auto engine = make_engine();
  const Instance instance = instance_of({"forward", "backward"});
  ASSERT_TRUE(op_of(engine, instance, Direction::kBackward)->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 2);
  ASSERT_TRUE(op_of(engine, instance, Direction::kForward)->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 2);
}

TEST_F(CompileAheadTest, OneJobCompilesWhatIsAskedForAlone) {
  values_["HSTUJIT_COMPILE_JOBS"] = "1";
  ASSERT_TRUE(op_of(make_engine(), instance_of({"forward", "backward"}), Direction::kForward)->prepare(1024, 0).ok());
  EXPECT_EQ(compiler_->compiles, 1);
}

TEST_F(CompileAheadTest, MissesOfBothDirectionsAreRecordedOnce) {
  values_["HSTUJIT_RECORD"] = (folder_->path() / "misses").string();
  const auto engine = make_engine();
  const Instance instance = instance_of({"forward", "backward"});
  ASSERT_TRUE(op_of(engine, instance, Direction::kForward)->prepare(1024, 0).ok());
  ASSERT_TRUE(op_of(engine, instance, Direction::kBackward)->prepare(1024, 0).ok());
  const auto recording = load_recording(values_["HSTUJIT_RECORD"]);
  ASSERT_TRUE(recording.ok()) << recording.status().message();
  EXPECT_EQ(recording->misses.size(), 2u);
}

}  // namespace
}  // namespace hstujit::test
