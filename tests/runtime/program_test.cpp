// Ops of programs against the fake driver: what is compiled, what is launched in which order, and on which memory.
#include "compiler/spec/program.h"

#include <thread>

#include "compiler/spec/sequence_rows.h"
#include "operations/configs/operation.h"
#include "runtime/dispatch/program_op.h"
#include "runtime/launch/program_layout.h"
#include "tests/runtime/support.h"
#include "tests/support/sanitized.h"

namespace hstujit::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kRows = 135, kWidth = 2 * 3 * 64;  // rows of the lengths below
constexpr int64_t kMatrix = kRows * kWidth * 2;      // bytes of a temporary

class ProgramTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    engine_ = make_engine();
    context_ = std::make_unique<CurrentContext>(*engine_);
  }

  static Instance instance_of(const Json& more = Json::object()) {
    Json json = {{"name", "layer"},
                 {"op", "norm_attention"},
                 {"heads", 2},
                 {"attn_dim", 64},
                 {"hidden_dim", 64},
                 {"max_seq_len", {128, 256}},
                 {"lengths", {5, 0, 130}},
                 {"directions", {"forward", "backward"}}};
    json.update(more);
    auto instance = parse_instance(json, "test", "");
    EXPECT_TRUE(instance.ok()) << instance.status().message();
    return *instance;
  }
  std::unique_ptr<Op> op_of(Direction direction, Backend backend = Backend::kCuda) {
    auto op = Op::create(engine_, {instance_of(), direction, backend, LengthMode::kPow2, {}});
    EXPECT_TRUE(op.ok()) << op.status().message();
    return std::move(*op);
  }
  static FakeLaunch values_of(Direction direction, DLDeviceType type = kDLCUDA) {
    return FakeLaunch(instance_of(), {{5, 0, 130}, {}, 200, {}}, type, direction);
  }
  // Kernels launched since reset(), without what their names say of the config; "" for a fill.
  static std::vector<std::string> launched() {
    std::vector<std::string> kernels;
    for (unsigned i = 0; i < fake().step_count; ++i) {
      const std::string kernel = fake().steps[i].kernel;
      kernels.push_back(kernel.substr(0, kernel.find("_bf16")));
    }
    return kernels;
  }

  EnginePtr engine_;
  std::unique_ptr<CurrentContext> context_;
};

TEST_F(ProgramTest, LaunchesItsStepsInOrder) {
  const auto op = op_of(Direction::kForward);
  ASSERT_TRUE(op->prepare(256, -1).ok());
  FakeLaunch launch = values_of(Direction::kForward);
  const auto bytes = op->workspace_size(launch.values.data(), launch.values.size());
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_EQ(*bytes, static_cast<size_t>(kMatrix + 255) / 256 * 256) << "the norm's result";
  alignas(256) static std::byte memory[kMatrix + 256];
  fake().step_count = 0;
  fake().capturing = 1;  // nothing in it is forbidden during a capture
  const Status status = op->launch(launch.values.data(), launch.values.size(), nullptr, {memory, *bytes});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(launched(), ElementsAre("layer_norm_forward", StartsWith("hstu_attention_forward")));
}

TEST_F(ProgramTest, BackwardSharesKernelsWithForwardAndWithTheOperatorsAlone) {
  const auto forward = op_of(Direction::kForward), backward = op_of(Direction::kBackward);
  ASSERT_TRUE(forward->prepare(256, -1).ok());
  ASSERT_TRUE(backward->prepare(256, -1).ok());
  EXPECT_EQ(compiler_->compiles, 6) << "two operators, two directions; attention has another one for short sequences";
  const auto alone = parse_instance({{"name", "norm"},
                                     {"op", "layer_norm"},
                                     {"width", kWidth},
                                     {"rows", 10},
                                     {"directions", {"forward", "backward"}}},
                                    "test", "");
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  const auto norm = Op::create(engine_, {*alone, Direction::kForward, Backend::kCuda, LengthMode::kPow2, {}});
  ASSERT_TRUE(norm.ok()) << norm.status().message();
  ASSERT_TRUE((*norm)->prepare(1, -1).ok());
  EXPECT_EQ(compiler_->compiles, 6);

  FakeLaunch launch = values_of(Direction::kBackward);
  const auto size = backward->workspace_size(launch.values.data(), launch.values.size());
  ASSERT_TRUE(size.ok()) << size.status().message();
  const size_t bytes = *size;
  EXPECT_GE(bytes, static_cast<size_t>(2 * kMatrix));
  std::vector<std::byte> memory(bytes + 256);
  void* address = memory.data();
  size_t space = memory.size();
  address = std::align(256, bytes, address, space);
  fake().step_count = 0;
  const Status status = backward->launch(launch.values.data(), launch.values.size(), nullptr, {address, bytes});
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<std::string> kernels = launched();
  std::erase(kernels, "");  // fills
  ASSERT_GE(kernels.size(), 3u);
  EXPECT_EQ(kernels.front(), "layer_norm_forward");
  EXPECT_THAT(kernels[1], StartsWith("hstu_attention_backward"));
  EXPECT_THAT(kernels[kernels.size() - 2], StartsWith("layer_norm_backward"));
}

TEST_F(ProgramTest, ALayerIsOneLaunchOfManyKernelsOnOneWorkspace) {
  const Lengths lengths{{5, 0, 130}, {}, 200, {}};
  for (const auto& [direction, least] : {std::pair(Direction::kForward, 5), {Direction::kBackward, 11}}) {
    const auto instance = parse_instance({{"name", "layer"},
                                          {"op", "stu_layer"},
                                          {"width", 64},
                                          {"heads", 2},
                                          {"attn_dim", 64},
                                          {"hidden_dim", 64},
                                          {"dropout", true},
                                          {"max_seq_len", 256},
                                          {"directions", {"forward", "backward"}}},
                                         "test", "");
    ASSERT_TRUE(instance.ok()) << instance.status().message();
    const auto op = Op::create(engine_, {*instance, direction, Backend::kCuda, LengthMode::kPow2, {}});
    ASSERT_TRUE(op.ok()) << op.status().message();
    const Status prepared = (*op)->prepare(256, -1);
    ASSERT_TRUE(prepared.ok()) << prepared.message();
    FakeLaunch launch(*instance, lengths, kDLCUDA, direction);
    const auto bytes = (*op)->workspace_size(launch.values.data(), launch.values.size());
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    // The workspace of forward, for 135 rows: uvqk, in whose columns of v, q and k y lies, too.
    if (direction == Direction::kForward) {
      EXPECT_EQ(*bytes, kRows * 2 * 512);
    }
    std::vector<std::byte> memory(*bytes + 256);
    void* address = memory.data();
    size_t space = memory.size();
    address = std::align(256, *bytes, address, space);
    fake().step_count = 0;
    fake().capturing = 1;  // nothing in it is forbidden during a capture
    const Status status = (*op)->launch(launch.values.data(), launch.values.size(), nullptr, {address, *bytes});
    fake().capturing = 0;
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<std::string> kernels = launched();
    std::erase(kernels, "");  // fills
    EXPECT_GE(kernels.size(), static_cast<size_t>(least));
    EXPECT_EQ(kernels.front(), "layer_norm_forward");
    EXPECT_EQ(kernels[1], "addmm_sm90");
    if (direction == Direction::kForward) {
      EXPECT_EQ(kernels.back(), "addmm_sm90");
    }
  }
}

// Workspace of a launch, in bytes of each row that is added: memory that cannot grow unseen.
class ProgramMemoryTest : public ProgramTest {
 protected:
  // A layer of 4 heads of 128 and rows of 512: one matrix of as many columns takes 1024 bytes of a row.
  static Json of_rows(const Json& more) {
    Json json = {{"name", "layer"},     {"op", "stu_layer"},   {"width", 512},
                 {"heads", 4},          {"attn_dim", 128},     {"hidden_dim", 128},
                 {"max_seq_len", 1024}, {"num_targets", true}, {"weight_dtype", "bf16"}};
    json.update(more);
    return json;
  }
  // Gives the launch so many rows. Shapes alone count; addresses are such that no tensors meet.
  static void place_apart(const Instance& instance, Direction direction, int64_t rows, FakeLaunch& launch) {
    uintptr_t address = uintptr_t{1} << 40;
    for (const Argument& argument : instance.spec->signature(direction)) {
      if (!has_rows(argument)) continue;
      launch.tensor(argument.name).data = reinterpret_cast<void*>(address += uintptr_t{1} << 40);
      launch.tensor(argument.name).shape[0] = rows;
    }
  }
  double bytes_of_row(const Json& more, Direction direction) {
    const auto instance = parse_instance(of_rows(more), "test", "");
    EXPECT_TRUE(instance.ok()) << instance.status().message();
    const auto op = Op::create(engine_, {*instance, direction, Backend::kCuda, LengthMode::kPow2, {}});
    EXPECT_TRUE(op.ok()) << op.status().message();
    EXPECT_TRUE((*op)->prepare(1024, -1).ok());
    FakeLaunch launch(*instance, {{1}, {0}, 1024, {}}, kDLCUDA, direction);
    const auto bytes_of = [&](int64_t rows) {
      place_apart(*instance, direction, rows, launch);
      const auto bytes = (*op)->workspace_size(launch.values.data(), launch.values.size());
      EXPECT_TRUE(bytes.ok()) << bytes.status().message();
      return bytes.ok() ? static_cast<double>(*bytes) : 0;
    };
    constexpr int64_t kMany = 1 << 17;
    return (bytes_of(2 * kMany) - bytes_of(kMany)) / kMany;
  }
};

TEST_F(ProgramMemoryTest, OfALayer) {
  // uvqk, in which y lies, too.
  EXPECT_NEAR(bytes_of_row(Json::object(), Direction::kForward), 4 * 1024, 8);
  // At attention: v, q and k, the gradient of uvqk, that of the attention output, and dq of fp32.
  EXPECT_NEAR(bytes_of_row(Json::object(), Direction::kBackward), (3 + 4 + 1 + 2) * 1024, 64);
  // A part of q, k and dq, for each group of heads.
  EXPECT_NEAR(bytes_of_row({{"backward_head_groups", 2}}, Direction::kBackward), (1 + 4 + 1 + 1) * 1024, 64);
  // The workspace of a quarter lies in dx.
  EXPECT_NEAR(bytes_of_row({{"backward_head_groups", 4}}, Direction::kBackward), (4 + 1) * 1024, 64);
  const Json kept = {{"recompute_normed_x", false}, {"recompute_uvqk", false}, {"recompute_y", false}};
  EXPECT_NEAR(bytes_of_row(kept, Direction::kForward), 0, 8);
  EXPECT_NEAR(bytes_of_row(kept, Direction::kBackward), (4 + 1 + 2) * 1024, 64);
  Json kept_in_groups = kept;
  kept_in_groups["backward_head_groups"] = 4;
  EXPECT_NEAR(bytes_of_row(kept_in_groups, Direction::kBackward), (4 + 1) * 1024, 64);
}

TEST_F(ProgramMemoryTest, OfAStack) {
  const Json four = {{"op", "stu_stack"}, {"layers", 4}};
  EXPECT_NEAR(bytes_of_row(four, Direction::kForward), 4 * 1024, 8);
  // Beside those of a layer, the gradients on both sides of it.
  EXPECT_NEAR(bytes_of_row(four, Direction::kBackward), (3 + 4 + 1 + 2 + 2) * 1024, 64);
  Json in_groups = four;
  in_groups["backward_head_groups"] = 4;
  EXPECT_NEAR(bytes_of_row(in_groups, Direction::kBackward), (4 + 1 + 2) * 1024, 64);
}

// Rows of dx that are not dense are no memory for a workspace.
TEST_F(ProgramMemoryTest, AWorkspaceLiesInDxWhereThatHasTheRoom) {
  const auto instance = parse_instance(of_rows({{"backward_head_groups", 4}}), "test", "");
  ASSERT_TRUE(instance.ok()) << instance.status().message();
  const auto op = Op::create(engine_, {*instance, Direction::kBackward, Backend::kCuda, LengthMode::kPow2, {}});
  ASSERT_TRUE(op.ok()) << op.status().message();
  ASSERT_TRUE((*op)->prepare(1024, -1).ok());
  FakeLaunch launch(*instance, {{1}, {0}, 1024, {}}, kDLCUDA, Direction::kBackward);
  constexpr int64_t kMany = 1 << 17;
  place_apart(*instance, Direction::kBackward, kMany, launch);
  // The driver fills it.
  const std::unique_ptr<void, decltype(&std::free)> dx(std::aligned_alloc(256, kMany * 520 * 2), &std::free);
  launch.tensor("dx").data = dx.get();
  const auto bytes_of = [&] {
    const auto bytes = (*op)->workspace_size(launch.values.data(), launch.values.size());
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return bytes.ok() ? *bytes : 0;
  };
  const auto launched_with = [&](size_t bytes) {
    const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(256, bytes / 256 * 256 + 256),
                                                             &std::free);
    return (*op)->launch(launch.values.data(), launch.values.size(), nullptr, {memory.get(), bytes});
  };
  const size_t in_dx = bytes_of();
  EXPECT_EQ(launched_with(in_dx).message(), "");
  int64_t apart[] = {520, 1};
  launch.tensor("dx").strides = apart;
  const size_t own = bytes_of();
  EXPECT_NEAR(static_cast<double>(own - in_dx) / kMany, 512, 300) << "dq of a head in fp32, less what others need";
  EXPECT_EQ(launched_with(in_dx).code(), Code::kInvalidArgument);
  EXPECT_EQ(launched_with(own).message(), "");
}

TEST_F(ProgramTest, KernelsOfStepsAreCompiledSideBySide) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core compiles one kernel after the other";
  values_["HSTUJIT_COMPILE_JOBS"] = "2";
  engine_ = make_engine();
  // Longer than the search for a step's kernel takes.
  compiler_->delay = std::chrono::milliseconds(kSanitized ? 3000 : 200);
  Json json = Json::object();
  json["directions"] = {"forward"};
  auto op = Op::create(engine_, {instance_of(json), Direction::kForward, Backend::kCuda, LengthMode::kPow2, {}});
  ASSERT_TRUE((*op)->prepare(256, -1).ok());
  EXPECT_EQ(compiler_->max_at_once, 2);
}

TEST_F(ProgramTest, WhatIsWrongIsSaidOfTheProgram) {
  const auto op = op_of(Direction::kForward);
  FakeLaunch launch = values_of(Direction::kForward);
  const auto refused = [&](Code code, const std::string& part, const Workspace& workspace = {}) {
    const Status status = op->launch(launch.values.data(), launch.values.size(), nullptr, workspace);
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(status.message(), HasSubstr(part));
  };
  refused(Code::kNotPrepared, "no kernel of norm_attention forward is prepared for max_seq_len 200 (bucket 256)");
  ASSERT_TRUE(op->prepare(128, -1).ok());
  refused(Code::kNotPrepared, "norm_attention: no kernel of hstu_attention forward is prepared for max_seq_len 200");
  ASSERT_TRUE(op->prepare(256, -1).ok());
  fake().step_count = 0;
  refused(Code::kInvalidArgument, "workspace is a null pointer; norm_attention needs 103680 bytes of device memory");
  alignas(256) static std::byte memory[kMatrix + 256];
  refused(Code::kInvalidArgument, "norm_attention needs 103680 bytes", {memory, kMatrix - 1});
  refused(Code::kInvalidArgument, "norm_attention needs 103680 bytes", {memory + 16, kMatrix});
  launch.tensor("x").shape[1] = 383;
  refused(Code::kInvalidArgument, "x.shape[1] is 383; it must be 384, shape (L, 384)");
  EXPECT_EQ(op->launch(launch.values.data(), 3, nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(op->launch(nullptr, launch.values.size(), nullptr).code(), Code::kInvalidArgument);
  EXPECT_EQ(op->workspace_size(nullptr, 0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(fake().step_count, 0u) << "no step was launched";
}

TEST_F(ProgramTest, RowsBehindTheLastSequenceAreRefusedWhereDataIsChecked) {
  values_["HSTUJIT_CHECK"] = "1";
  engine_ = make_engine();
  const auto op = op_of(Direction::kForward);
  ASSERT_TRUE(op->prepare(256, -1).ok());
  FakeLaunch launch = values_of(Direction::kForward);
  alignas(256) static std::byte memory[kMatrix + 256];
  const auto status = [&] {
    return op->launch(launch.values.data(), launch.values.size(), nullptr, {memory, sizeof(memory)});
  };
  EXPECT_TRUE(status().ok()) << status().message();
  reinterpret_cast<int64_t*>(launch.tensor("seq_offsets").data)[3] = 134;
  EXPECT_EQ(status().code(), Code::kInvalidArgument);
  EXPECT_THAT(status().message(), HasSubstr("seq_offsets[3] is 134; it must be L = 135"));
}

TEST_F(ProgramTest, WithoutSequencesSumsAreZeroAndNothingElseRuns) {
  const auto op = op_of(Direction::kBackward);
  ASSERT_TRUE(op->prepare(256, -1).ok());
  FakeLaunch launch(instance_of(), {{}, {}, 200, {}}, kDLCUDA, Direction::kBackward);
  fake().step_count = 0;
  const Status status = op->launch(launch.values.data(), launch.values.size(), nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(launched(), ElementsAre("", "")) << "dweight and dbias";
}

TEST_F(ProgramTest, AConfigListsTheKernelsOfItsSteps) {
  Config config;
  config.instances = {instance_of()};
  const auto keys = list_keys(*engine_, config, "layer");
  ASSERT_TRUE(keys.ok());
  std::vector<std::string> labels;
  for (const Task& key : *keys) labels.push_back(key.label() + ", bucket " + to_string(key.bucket));
  EXPECT_THAT(
      labels,
      ElementsAre("layer/layer_norm forward, bucket 1", "layer/hstu_attention forward 128, bucket 128",
                  "layer/hstu_attention forward 256, bucket 256", "layer/hstu_attention backward 128, bucket 128",
                  "layer/layer_norm backward, bucket 1", "layer/hstu_attention backward 256, bucket 256"));
  EXPECT_EQ(list_launches(*engine_, config, "")->size(), 4u);
}

TEST(ProgramLayout, TensorsThatAreNotNeededTogetherShareMemory) {
  const auto instance = parse_op_spec(
      {{"op", "norm_attention"}, {"heads", 1}, {"attn_dim", 8}, {"hidden_dim", 8}, {"max_attn_len", 4}}, "");
  const Program& program = *(*instance)->program(Direction::kBackward);
  const ProgramLayout layout(program);
  // normed lives in steps 0 and 1, dnormed in 1 and 2.
  EXPECT_NE(layout.slot_of_temporary(0), layout.slot_of_temporary(1));
  EXPECT_EQ(layout.count(), 3u);
  EXPECT_EQ(layout.slot_of_steps(), 2u) << "of workspaces";
  ProgramLayout::Slots slots;
  slots.bytes = {1, 0, 257};
  layout.place(slots);
  EXPECT_EQ(slots.starts[1], 256);
  EXPECT_EQ(slots.starts[2], 256);
  EXPECT_EQ(slots.total, 256 + 512);
}

}  // namespace
}  // namespace hstujit::test
