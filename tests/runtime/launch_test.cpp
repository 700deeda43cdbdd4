// Launches against the fake driver: sentences for every bad value, packing, grids, host time.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "compiler/spec/limits.h"
#include "runtime/launch/data_checks.h"
#include "tests/runtime/launch_fixture.h"
#include "tests/support/sanitized.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

TEST_F(LaunchTest, GoodValuesAreLaunchedOnce) {
  const Status status = launch();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(fake().launches, 1);
  EXPECT_GT(fake().grid, 0u);
  EXPECT_GT(fake().threads, 0u);
}

TEST_F(LaunchTest, EachBadValueIsNamed) {
  launch_->value("q").tensor = nullptr;
  expect_refused("q is a null pointer");
  launch_->value("q").tensor = &launch_->tensor("q");
  launch_->tensor("k").dtype.bits = 32;
  expect_refused("k has dtype bf32; it must be bf16");
  launch_->tensor("k").dtype.bits = 16;
  launch_->tensor("v").ndim = 2;
  expect_refused("v has rank 2; it must have rank 3, shape (L, 2, 64)");
  launch_->tensor("v").ndim = 3;
  launch_->tensor("v").shape[1] = 3;
  expect_refused("v.shape[1] is 3; it must be 2");
  launch_->tensor("v").shape[1] = 2;
  launch_->tensor("k").shape[0] = 134;
  expect_refused("k.shape[0] is 134; it must be L = 135, as in q");
  launch_->tensor("k").shape[0] = 135;
  launch_->tensor("q").byte_offset = 2;
  expect_refused("it must be a multiple of 16 bytes");
  launch_->tensor("q").byte_offset = 0;
  launch_->tensor("out").data = nullptr;
  expect_refused("out has a null data pointer");
}

TEST_F(LaunchTest, StridesAndPlacesAreChecked) {
  int64_t strides[] = {128, 64, 2};
  launch_->tensor("q").strides = strides;
  expect_refused("q.strides[2] is 2; the innermost stride must be 1");
  strides[2] = 1;
  strides[0] = 129;
  expect_refused("q.strides[0] is 129 elements, 258 bytes; it must be a multiple of 16 bytes");
  strides[0] = -128;
  expect_refused("q.strides[0] is -128; it must be 0 or more");
  launch_->tensor("q").strides = nullptr;
  launch_->tensor("q").device.device_type = kDLCPU;
  expect_refused("q is in host memory; it must be in CUDA memory");
  launch_->tensor("q").device = {kDLCUDA, 3};
  expect_refused("q is on CUDA device 3; it must be on device 0");
}

TEST_F(LaunchTest, ScalarsAreChecked) {
  launch_->value("max_seq_len").integer = -3;
  expect_refused("max_seq_len is -3; it must be 0 or more");
  launch_->value("max_seq_len").integer = kMaxSeqLen + 1;
  expect_refused("max_seq_len is 268435457; it must be at most 268435456");
  EXPECT_THAT(op_->prepare(kMaxSeqLen + 1, -1).message(),
              HasSubstr("max_seq_len is 268435457; it must be between 1 and 268435456"));
  launch_->value("max_seq_len").integer = 200;
  launch_->value("alpha").real = std::numeric_limits<double>::quiet_NaN();
  expect_refused("alpha is nan; it must be a finite number");
}

TEST_F(LaunchTest, WrongCountListsTheArguments) {
  const Status status = op_->launch(launch_->values.data(), 3, nullptr);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("3 values are given; this op takes 8: q, k, v, seq_offsets"));
  EXPECT_THAT(op_->launch(launch_->values.data(), 1, nullptr).message(),
              HasSubstr("1 value is given; this op takes 8"));
  EXPECT_THAT(op_->launch(launch_->values.data(), SIZE_MAX, nullptr).message(),
              HasSubstr("18446744073709551615 values are given"));
}

TEST_F(LaunchTest, UnpreparedBucketIsNamed) {
  launch_->value("max_seq_len").integer = 3000;
  const Status status = launch();
  EXPECT_EQ(status.code(), Code::kNotPrepared);
  EXPECT_THAT(status.message(), HasSubstr("max_seq_len 3000 (bucket 4096)"));
}

TEST_F(LaunchTest, AThreadWithoutAContextIsToldSo) {
  Status status;
  std::thread([&] { status = launch(); }).join();
  EXPECT_EQ(status.code(), Code::kNotPrepared);
  EXPECT_THAT(status.message(), HasSubstr("no CUDA context is current in the calling thread"));
  EXPECT_EQ(fake().launches, 0);
}

TEST_F(LaunchTest, ANewContextAtTheAddressOfADestroyedOneIsNotPrepared) {
  ASSERT_TRUE(launch().ok());
  fake().contexts_destroyed = 1;
  EXPECT_EQ(launch().code(), Code::kNotPrepared);
  EXPECT_EQ(fake().launches, 1) << "the function of the destroyed context is not launched";
  ASSERT_TRUE(op_->prepare(256, -1).ok());
  EXPECT_EQ(fake().module_loads, 4) << "of two classes of batches in two contexts";
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(fake().launches, 2);
}

TEST_F(LaunchTest, ADestroyedContextThatIsStillCurrentIsADriverError) {
  fake().failing = "cuCtxGetId";
  const Status status = launch();
  EXPECT_EQ(status.code(), Code::kDriverError);
  EXPECT_THAT(status.message(), HasSubstr("cuCtxGetId failed with CUDA_ERROR_FAKE"));
}

TEST_F(LaunchTest, MoreRowsThanATensorMapHasCoordinatesForAreUnsupported) {
  // Addresses that nobody touches, far enough from one another for so many rows.
  uintptr_t address = 0;
  for (const char* name : {"q", "k", "v", "out"}) {
    launch_->tensor(name).data = reinterpret_cast<void*>(address += uintptr_t{1} << 42);
  }
  const auto set_rows = [&](int64_t rows) {
    for (const char* name : {"q", "k", "v", "out"}) launch_->tensor(name).shape[0] = rows;
  };
  set_rows(int64_t{1} << 31);
  const Status status = launch();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("q has 2147483648 rows"));
  EXPECT_THAT(status.message(), HasSubstr("at most 2147483647 rows"));
  EXPECT_EQ(fake().tensor_maps, 0);
  EXPECT_EQ(fake().launches, 0);
  set_rows((int64_t{1} << 31) - 1);
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(fake().launches, 1);
}

TEST_F(LaunchTest, FailuresOfTheDriverCarryItsWords) {
  fake().failing = "cuLaunchKernel";
  const Status status = launch();
  EXPECT_EQ(status.code(), Code::kDriverError);
  EXPECT_THAT(status.message(), HasSubstr("cuLaunchKernel failed with CUDA_ERROR_FAKE (as the test asked)"));
}

TEST_F(LaunchTest, CheckModeLooksAtTheOffsets) {
  values_["HSTUJIT_CHECK"] = "1";
  engine_ = make_engine();
  op_ = make_op(engine_, Backend::kCuda, kBf16);
  ASSERT_TRUE(op_->prepare(256, -1).ok());
  EXPECT_TRUE(launch().ok());
  fake().launches = 0;
  static_cast<int64_t*>(launch_->tensor("seq_offsets").data)[1] = 9000;
  expect_refused("seq_offsets[1] is 9000; it must be at most L = 135");
  fake().capturing = 1;
  EXPECT_TRUE(launch().ok()) << "nothing is looked at during a capture";
}

TEST_F(LaunchTest, ALaunchTakesLessThanFiveMicroseconds) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer is what would be timed";
  constexpr int kLaunches = 20000;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) ASSERT_TRUE(launch().ok());
    const auto elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, std::chrono::duration<double, std::micro>(elapsed).count() / kLaunches);
  }
  RecordProperty("microseconds", std::to_string(best));
  EXPECT_LT(best, 5.0);
}

TEST_F(LaunchTest, ALengthThatScalesIsRefusedOutsideOfItsRange) {
  hstujit_value& scaling = launch_->value("scaling_seqlen");
  for (const int64_t value : {int64_t{-2}, std::numeric_limits<int64_t>::min()}) {
    scaling.integer = value;
    expect_refused(fmt::format("scaling_seqlen is {}; it must be -1 or more", value));
  }
  for (const int64_t value : {(int64_t{1} << 28) + 1, std::numeric_limits<int64_t>::max()}) {
    scaling.integer = value;
    expect_refused(fmt::format("scaling_seqlen is {}; it must be at most 268435456", value));
  }
  for (const int64_t value : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1} << 28}) {
    scaling.integer = value;
    EXPECT_TRUE(launch().ok()) << value;
  }
}

// Packing by itself, with a plan of every kind of slot.
TEST_F(LaunchTest, ParametersArePackedAsThePlanSays) {
  using Kind = ParamSlot::Kind;
  Signature signature = launch_->problem.signature;
  const auto slot = [&](Kind kind, std::string_view argument) {
    ParamSlot result;
    result.name = argument;
    result.kind = kind;
    result.argument = find_argument(signature, argument);
    return result;
  };
  LaunchPlan plan;
  plan.kernel_name = "k";
  plan.threads = 384;
  plan.shared_memory = 1000;
  plan.persistent_blocks = 7;
  plan.slots = {slot(Kind::kFloat, "alpha"),
                slot(Kind::kPointer, "k"),
                slot(Kind::kStride, "v"),
                slot(Kind::kSize, "q"),
                slot(Kind::kInverse, "scaling_seqlen"),
                slot(Kind::kInt, "max_seq_len"),
                slot(Kind::kTensorMap, "q"),
                slot(Kind::kLong, "scaling_seqlen")};
  plan.slots[3].bias = -1;
  plan.slots[4].fallback = find_argument(signature, "max_seq_len");
  plan.slots[6].map = {{{2, 64}, {1, 1}, {0, 128}}, 128};
  GridFactor factor;
  factor.source = GridFactor::Source::kScalar;
  factor.argument = find_argument(signature, "max_seq_len");
  factor.divisor = 64;
  GridFactor heads;
  heads.constant = 3;
  plan.grid = {factor, heads};

  constexpr int64_t kManyBits = -0x123456789abcdef;
  signature[static_cast<size_t>(find_argument(signature, "scaling_seqlen"))].min = kManyBits;
  launch_->values[static_cast<size_t>(find_argument(signature, "scaling_seqlen"))].integer = kManyBits;
  const auto launcher = make_launcher(signature, plan);
  ASSERT_TRUE(launcher.ok()) << launcher.status().message();
  ASSERT_TRUE((*launcher)->launch(launch_->values.data(), launch_->values.size(), nullptr).ok());

  const FakeCuda& seen = fake();
  EXPECT_EQ(seen.grid, 7u) << "12 blocks, at most 7 of them resident";
  EXPECT_EQ(seen.threads, 384u);
  EXPECT_EQ(seen.shared_memory, 1000u);
  const auto offsets = slot_offsets(plan.slots);
  const auto read = [&]<typename T>(size_t index, T) {
    T value;
    std::memcpy(&value, seen.parameters + offsets[index], sizeof(value));
    return value;
  };
  EXPECT_FLOAT_EQ(read(0, 0.0f), 1.0f / 64);
  EXPECT_EQ(read(1, static_cast<void*>(nullptr)), launch_->tensor("k").data);
  EXPECT_EQ(read(2, int64_t{0}), 128);
  EXPECT_EQ(read(3, int64_t{0}), 134);
  EXPECT_FLOAT_EQ(read(4, 0.0f), 1.0f / 200);
  EXPECT_EQ(read(5, int32_t{0}), 200);
  EXPECT_EQ(read(7, int64_t{0}), kManyBits);
  EXPECT_EQ(seen.map_rank, 3u);
  EXPECT_THAT(std::vector(seen.dimensions, seen.dimensions + 3), ::testing::ElementsAre(64, 2, 135));
  EXPECT_THAT(std::vector(seen.strides, seen.strides + 2), ::testing::ElementsAre(128, 256));
  EXPECT_THAT(std::vector(seen.box, seen.box + 3), ::testing::ElementsAre(64, 1, 128));
  EXPECT_EQ(seen.map_type, 9);

  plan.persistent_blocks = 0;
  const auto whole = make_launcher(signature, plan);
  ASSERT_TRUE((*whole)->launch(launch_->values.data(), launch_->values.size(), nullptr).ok());
  EXPECT_EQ(seen.grid, 12u) << "ceil(200 / 64) * 3";

  plan.slots[7] = slot(Kind::kLong, "alpha");
  EXPECT_THAT(make_launcher(signature, plan).status().message(), HasSubstr("does not fit argument alpha"));
}

TEST(CheckJagged, NamesTheFirstMistake) {
  const auto message = [](std::string_view offsets, const std::vector<int64_t>& values, int64_t max_rows) {
    const bool all = offsets == "seq_offsets";
    const JaggedAxis axis{offsets, all ? "L" : "Lq", 9, all ? "max_seq_len" : "max_delta_len", max_rows};
    return check_jagged(axis, values).message();
  };
  EXPECT_EQ(message("seq_offsets", {0, 3, 3, 9}, 6), "");
  EXPECT_THAT(message("seq_offsets", {1, 3}, 9), HasSubstr("seq_offsets[0] is 1; it must be 0"));
  EXPECT_EQ(message("seq_offsets_q", {0, 3, 2}, 9),
            "seq_offsets_q[2] is 2; it must be at least seq_offsets_q[1], which is 3");
  EXPECT_THAT(message("seq_offsets", {0, 3, std::numeric_limits<int64_t>::min()}, 9), HasSubstr("must be at least"));
  EXPECT_EQ(message("seq_offsets_q", {0, 10}, 10), "seq_offsets_q[1] is 10; it must be at most Lq = 9");
  EXPECT_EQ(message("seq_offsets", {0, 7}, 6),
            "sequence 0 has 7 rows by seq_offsets; at most max_seq_len = 6 are allowed");
  EXPECT_EQ(message("seq_offsets_q", {0, 0, 7}, 6),
            "sequence 1 has 7 rows by seq_offsets_q; at most max_delta_len = 6 are allowed");
}

TEST(CheckTargets, NamesTheFirstMistake) {
  EXPECT_TRUE(check_counts("num_targets", {0, 3, 3, 9}, {1, 0, 6}).ok());
  EXPECT_EQ(check_counts("num_targets", {0, 3}, {4}).message(),
            "num_targets[0] is 4; it must be between 0 and the sequence's 3 rows");
  EXPECT_THAT(check_counts("num_targets", {0, 3}, {-1}).message(), HasSubstr("num_targets[0] is -1"));
}

}  // namespace
}  // namespace hstujit::test
