// A prepared op and the values of a launch of it.
#pragma once

#include <memory>
#include <string>

#include "runtime/launch/launcher.h"
#include "tests/runtime/support.h"

namespace hstujit::test {

class LaunchTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    engine_ = make_engine();
    context_ = std::make_unique<CurrentContext>(*engine_);
    op_ = make_op(engine_, Backend::kCuda, kBf16);
    const Status prepared = op_->prepare(256, -1);
    ASSERT_TRUE(prepared.ok()) << prepared.message();
    lengths_.rows = {5, 0, 130};
    lengths_.max_seq_len = 200;
    launch_ = std::make_unique<FakeLaunch>(make_instance(kBf16), lengths_);
  }

  Status launch() { return op_->launch(launch_->values.data(), launch_->values.size(), nullptr); }
  // Makes a launcher of a kernel with this plan, in the current context.
  Result<LauncherPtr> make_launcher(const Signature& signature, const LaunchPlan& plan) {
    const CudaDriverPtr driver = *engine_->driver();
    const auto context = current_context(*driver);
    if (!context.ok()) return context.status();
    HSTUJIT_ASSIGN_OR_RETURN(const ModulePtr module, Module::load(driver, *context, cubin_of("a cubin"), plan));
    return Launcher::create(driver, module, signature, plan);
  }
  // Launches with these values a kernel whose number of blocks is this factor.
  Status launch_of_grid(const FakeLaunch& values, const GridFactor& blocks) {
    LaunchPlan plan;
    plan.kernel_name = "k";
    plan.threads = 32;
    plan.grid = {blocks};
    HSTUJIT_ASSIGN_OR_RETURN(const LauncherPtr launcher, make_launcher(values.problem.signature, plan));
    return launcher->launch(values.values.data(), values.values.size(), nullptr);
  }
  void expect_refused(const std::string& part) {
    const Status status = launch();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), ::testing::HasSubstr(part));
    EXPECT_EQ(fake().launches, 0);
  }

  EnginePtr engine_;
  std::unique_ptr<CurrentContext> context_;
  std::unique_ptr<Op> op_;
  Lengths lengths_;
  std::unique_ptr<FakeLaunch> launch_;
};

}  // namespace hstujit::test
