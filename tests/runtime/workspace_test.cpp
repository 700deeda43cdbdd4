// Launches that borrow a workspace and run several kernels, against the fake driver: order, sizes, sentences.
#include <fmt/format.h>

#include <cstring>

#include "runtime/launch/launcher.h"
#include "tests/runtime/support.h"

namespace hstujit::test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 135;  // of the lengths below

class WorkspaceTest : public RuntimeTest {
 protected:
  using Source = GridFactor::Source;

  void SetUp() override {
    RuntimeTest::SetUp();
    engine_ = make_engine();
    driver_ = *engine_->driver();
    context_ = std::make_unique<CurrentContext>(*engine_);
    lengths_.rows = {5, 0, 130};
    lengths_.max_seq_len = 200;
    launch_ = std::make_unique<FakeLaunch>(make_instance(), lengths_);
    plan_ = two_kernels();
  }

  static GridFactor constant(int64_t value) {
    GridFactor factor;
    factor.constant = value;
    return factor;
  }
  GridFactor rows_of(std::string_view argument, int64_t divisor) const {
    GridFactor factor;
    factor.source = Source::kSize;
    factor.argument = launch_->index(argument);
    factor.divisor = divisor;
    return factor;
  }

  // A kernel that adds up parts of rows of 100 numbers in fp32, and one that turns them into the output.
  LaunchPlan two_kernels() const {
    LaunchPlan plan;
    plan.kernel_name = "add_up";
    plan.threads = 256;
    plan.shared_memory = 1000;
    ParamSlot out;
    out.name = "out";
    out.argument = launch_->index("out");
    out.type = "u16*";
    ParamSlot sums;
    sums.name = "sums";
    sums.kind = ParamSlot::Kind::kWorkspace;
    sums.type = "float*";
    plan.slots = {out, sums};
    plan.grid = {constant(7)};
    plan.workspace.regions = {{{rows_of("q", 1), constant(400)}, true}};
    FollowingKernel convert;
    convert.kernel_name = "convert";
    convert.function = "convert";
    convert.threads = 128;
    convert.grid = {rows_of("out", 16)};
    plan.following = {convert};
    return plan;
  }

  Result<LauncherPtr> make_launcher() {
    const auto context = current_context(*driver_);
    if (!context.ok()) return context.status();
    HSTUJIT_ASSIGN_OR_RETURN(const ModulePtr module, Module::load(driver_, *context, cubin_of("a cubin"), plan_));
    return Launcher::create(driver_, module, launch_->problem.signature, plan_);
  }
  Status launch(void* workspace, size_t bytes = size_t{kRows * 400}) {
    HSTUJIT_ASSIGN_OR_RETURN(const LauncherPtr launcher, make_launcher());
    return launcher->launch(launch_->values.data(), launch_->values.size(), nullptr, {workspace, bytes});
  }
  int64_t size() {
    const auto launcher = make_launcher();
    if (!launcher.ok()) return -1;
    const auto bytes = (*launcher)->workspace_size(launch_->values.data(), launch_->values.size());
    return bytes.ok() ? static_cast<int64_t>(*bytes) : -1;
  }
  void expect_refused(void* workspace, const std::string& part, size_t bytes = size_t{kRows * 400}) {
    const Status status = launch(workspace, bytes);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(part));
    EXPECT_EQ(fake().step_count, 0u) << "nothing is enqueued";
  }

  EnginePtr engine_;
  CudaDriverPtr driver_;
  std::unique_ptr<CurrentContext> context_;
  Lengths lengths_;
  std::unique_ptr<FakeLaunch> launch_;
  LaunchPlan plan_;
  alignas(256) unsigned char memory_[kRows * 400 + 1] = {};
};

TEST_F(WorkspaceTest, IsClearedBeforeTheKernelsRunInOrder) {
  std::memset(memory_, 0xFF, sizeof(memory_));
  const Status status = launch(memory_);
  ASSERT_TRUE(status.ok()) << status.message();
  const FakeCuda& seen = fake();
  ASSERT_EQ(seen.step_count, 3u);
  EXPECT_STREQ(seen.steps[0].kernel, "");
  EXPECT_EQ(seen.steps[0].address, reinterpret_cast<unsigned long long>(memory_));
  EXPECT_EQ(seen.steps[0].byte, 0);
  EXPECT_EQ(seen.steps[0].bytes, size_t{kRows * 400});
  EXPECT_EQ(memory_[kRows * 400], 0xFF) << "no byte more";
  EXPECT_STREQ(seen.steps[1].kernel, "add_up");
  EXPECT_EQ(seen.steps[1].grid, 7u);
  EXPECT_EQ(seen.steps[1].threads, 256u);
  EXPECT_EQ(seen.steps[1].shared_memory, 1000u);
  EXPECT_STREQ(seen.steps[2].kernel, "convert");
  EXPECT_EQ(seen.steps[2].grid, 9u) << "ceil(135 / 16)";
  EXPECT_EQ(seen.steps[2].threads, 128u);
  EXPECT_EQ(seen.steps[2].shared_memory, 0u);
  void* parameters[2];  // of the last kernel: both get the same
  std::memcpy(parameters, seen.parameters, sizeof(parameters));
  EXPECT_EQ(parameters[0], launch_->tensor("out").data);
  EXPECT_EQ(parameters[1], memory_);
}

// Each region begins at a multiple of 256 bytes; those that are cleared are cleared together.
TEST_F(WorkspaceTest, HasRegions) {
  plan_.workspace.regions = {{{constant(4)}, true}, {{constant(300)}, true}, {{rows_of("q", 1), constant(8)}, false}};
  plan_.slots[1].region = 2;
  EXPECT_EQ(size(), 256 + 512 + kRows * 8);
  std::memset(memory_, 0xFF, sizeof(memory_));
  ASSERT_TRUE(launch(memory_).ok());
  const FakeCuda& seen = fake();
  ASSERT_EQ(seen.step_count, 3u);
  EXPECT_EQ(seen.steps[0].address, reinterpret_cast<unsigned long long>(memory_));
  EXPECT_EQ(seen.steps[0].bytes, size_t{256 + 300});
  EXPECT_EQ(memory_[256 + 300], 0xFF) << "no byte more";
  void* parameters[2];
  std::memcpy(parameters, seen.parameters, sizeof(parameters));
  EXPECT_EQ(parameters[1], memory_ + 256 + 512);
}

TEST_F(WorkspaceTest, ASizeThatNoNumberHoldsIsTooLarge) {
  const int64_t huge = int64_t{1} << 62;
  plan_.workspace.regions = {{{constant(huge)}, false}, {{constant(huge)}, false}, {{constant(huge)}, false}};
  EXPECT_GT(size(), huge);
}

TEST_F(WorkspaceTest, IsLeftAloneWhereNobodyAsksForZeroes) {
  plan_.workspace.regions[0].cleared = false;
  plan_.following[0].max_blocks = 4;
  memory_[0] = 0xFF;
  ASSERT_TRUE(launch(memory_).ok());
  ASSERT_EQ(fake().step_count, 2u);
  EXPECT_STREQ(fake().steps[0].kernel, "add_up");
  EXPECT_EQ(fake().steps[1].grid, 4u);
  EXPECT_EQ(memory_[0], 0xFF);
}

TEST_F(WorkspaceTest, OneThatIsMissingMisplacedOrTooSmallIsNamed) {
  expect_refused(
      nullptr,
      "workspace is a null pointer; add_up needs 54000 bytes of device memory for these sizes, at a multiple "
      "of 256 (workspace_size says how many)");
  void* const misplaced = memory_ + 128;
  expect_refused(misplaced, fmt::format("workspace is {} with 54000 bytes; add_up needs 54000", misplaced));
  void* const small = memory_;
  expect_refused(small, fmt::format("workspace is {} with 53999 bytes; add_up needs 54000", small), 53999);
}

TEST_F(WorkspaceTest, ItsSizeIsThatOfTheLaunch) {
  EXPECT_EQ(size(), kRows * 400);
  Lengths empty;
  empty.rows = {0, 0};
  empty.max_seq_len = 200;
  launch_ = std::make_unique<FakeLaunch>(make_instance(), empty);
  EXPECT_EQ(size(), 0) << "nothing to write";
  EXPECT_TRUE(launch(nullptr).ok());
  EXPECT_EQ(fake().step_count, 0u);
  // Rows that belong to no sequence are nobody's.
  launch_ = std::make_unique<FakeLaunch>(make_instance(), lengths_);
  GridFactor sequences = rows_of("seq_offsets", 1);
  sequences.bias = -1;
  plan_.grid = {sequences};
  launch_->tensor("seq_offsets").shape[0] = 1;
  EXPECT_EQ(size(), 0);
  EXPECT_TRUE(launch(nullptr).ok());
  EXPECT_EQ(fake().step_count, 0u);
  launch_->tensor("k").shape[0] = 134;
  const auto launcher = make_launcher();
  ASSERT_TRUE(launcher.ok());
  EXPECT_THAT((*launcher)->workspace_size(launch_->values.data(), launch_->values.size()).status().message(),
              HasSubstr("k.shape[0] is 134; it must be L = 135"));
}

TEST_F(WorkspaceTest, AKernelWithoutAnyIgnoresWhatIsGiven) {
  plan_ = LaunchPlan();
  plan_.kernel_name = "plain";
  plan_.threads = 32;
  EXPECT_EQ(size(), 0);
  EXPECT_TRUE(launch(nullptr).ok());
  EXPECT_TRUE(launch(memory_ + 1).ok());
  EXPECT_EQ(fake().step_count, 2u);
}

TEST_F(WorkspaceTest, AFollowingKernelWithoutBlocksDoesNotRun) {
  plan_.following.push_back(plan_.following[0]);
  GridFactor beyond = rows_of("out", 1);
  beyond.bias = -kRows;
  plan_.following[0].grid = {beyond};
  plan_.following[1].kernel_name = "last";
  ASSERT_TRUE(launch(memory_).ok());
  ASSERT_EQ(fake().step_count, 3u);
  EXPECT_STREQ(fake().steps[2].kernel, "last");
}

TEST_F(WorkspaceTest, AGridThatIsTooLargeKeepsAllKernelsFromRunning) {
  plan_.following[0].grid.push_back(constant(int64_t{1} << 40));
  expect_refused(memory_, "these sizes need 9895604649984 blocks of convert; at most 2147483647 can be launched");
}

TEST_F(WorkspaceTest, PlansThatContradictThemselvesAreRefused) {
  plan_.workspace.regions.clear();
  EXPECT_THAT(make_launcher().status().message(),
              HasSubstr("parameter sums is the address of region 0 of a workspace of 0 regions"));
  plan_ = two_kernels();
  plan_.following[0].grid[0].argument = 99;
  EXPECT_THAT(make_launcher().status().message(), HasSubstr("convert: a grid factor refers to no such argument"));
  plan_ = two_kernels();
  plan_.workspace.regions[0].bytes[0].argument = -1;
  EXPECT_EQ(make_launcher().status().code(), Code::kInternal);
  plan_ = two_kernels();
  plan_.workspace.regions = {{{constant(4)}, false}, {{constant(4)}, true}};
  EXPECT_THAT(make_launcher().status().message(),
              HasSubstr("region 1 of the workspace is cleared and the one before is not"));
  plan_.workspace.regions.assign(WorkspacePlan::kMaxRegions + 1, {{constant(4)}, false});
  EXPECT_THAT(make_launcher().status().message(), HasSubstr("a workspace of 9 regions; at most 8 are allowed"));
}

TEST_F(WorkspaceTest, ACubinThatLacksAFollowingKernelIsNoKernelForIt) {
  fake().lacking = "convert";
  const Status status = make_launcher().status();
  EXPECT_EQ(status.code(), Code::kCompileFailed);
  EXPECT_THAT(status.message(), HasSubstr("the cubin does not define the kernel convert"));
}

TEST_F(WorkspaceTest, FailuresOfTheDriverNameTheStep) {
  fake().failing = "cuMemsetD8Async";
  EXPECT_THAT(launch(memory_).message(), HasSubstr("add_up: cuMemsetD8Async failed with CUDA_ERROR_FAKE"));
  EXPECT_EQ(fake().launches, 0);
}

TEST_F(WorkspaceTest, AnOpsSizeIsThatOfThePreparedKernel) {
  const auto op = make_op(engine_);
  const auto ask = [&] { return op->workspace_size(launch_->values.data(), launch_->values.size()); };
  EXPECT_EQ(ask().status().code(), Code::kNotPrepared);
  ASSERT_TRUE(op->prepare(200, -1).ok());
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(*ask(), 0u) << "the forward kernels need none";
  launch_->value("max_seq_len").integer = 3000;
  EXPECT_EQ(ask().status().code(), Code::kNotPrepared);
  EXPECT_EQ(op->workspace_size(launch_->values.data(), 3).status().code(), Code::kInvalidArgument);
  launch_->value("max_seq_len").integer = 200;
  const auto on_host = make_op(engine_, Backend::kHost);
  const auto host_bytes = on_host->workspace_size(launch_->values.data(), launch_->values.size());
  EXPECT_EQ(host_bytes.status().code(), Code::kNotPrepared) << "as a launch there";
  EXPECT_EQ(on_host->workspace_size(nullptr, 0).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace hstujit::test
