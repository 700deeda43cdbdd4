// For tests that compile kernels: with a libnvrtc, none may spill, nor have products that the assembler serialises. One
// that does is one that the registers of the skeleton's Resources do not fit.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/emit/source.h"
#include "compiler/nvrtc/nvrtc.h"
#include "tests/nvrtc/kept_results.h"

namespace hstujit {

class CompiledKernels : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("HSTUJIT_NVRTC");
    auto opened = Nvrtc::open(path != nullptr ? path : "");
    if (!opened.ok()) GTEST_SKIP() << opened.status().message();
    nvrtc_ = *opened;
  }

  void expect_fits(const OpSpec& spec, Direction direction, const KernelConfig& config, const DeviceSpec& device) {
    const auto kernel = emit_kernel(spec, direction, config, device);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const auto output = compile_once(results_, *nvrtc_, compile_input(kernel->source, kernel->plan, device.arch));
    ASSERT_TRUE(output.ok()) << output.status().message();
    std::string rejects;
    for (const auto& reject : output->rejects) rejects += reject.reason + ": " + reject.detail + "\n";
    EXPECT_EQ(rejects, "") << spec.to_json() << describe(config);
  }

  std::shared_ptr<const Nvrtc> nvrtc_;
  const KeptFiles results_ = kept_cubins();
};

}  // namespace hstujit
