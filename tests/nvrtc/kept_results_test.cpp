#include "tests/nvrtc/kept_results.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/support/files.h"

namespace hstujit {
namespace {

namespace fs = std::filesystem;

class CompileOnce : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Nvrtc::open();
    if (!opened.ok()) GTEST_SKIP() << opened.status().message();
    nvrtc_ = *opened;
    input_.source = "extern \"C\" __global__ void k(float* y) { y[0] = 1; }\n";
    input_.entry = "k";
    input_.arch = "sm_80";
  }

  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  TempDir folder_ = std::move(TempDir::create()).value();
  KeptFiles results_{folder_.path(), 16};
  std::shared_ptr<const Nvrtc> nvrtc_;
  CompileInput input_;
};

TEST_F(CompileOnce, TheSecondTimeTheResultIsTheSame) {
  std::string logs[2];
  const auto first = compile_once(results_, *nvrtc_, input_, &logs[0]);
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_EQ(files(), 1u);
  const auto second = compile_once(results_, *nvrtc_, input_, &logs[1]);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_EQ(second->compile_ms, 0) << "it was compiled again";
  EXPECT_EQ(first->cubin, second->cubin);
  EXPECT_EQ(first->resources, second->resources);
  EXPECT_EQ(first->rejects, second->rejects);
  EXPECT_EQ(logs[0], logs[1]);
}

TEST_F(CompileOnce, EachPartOfTheInputChangesTheKey) {
  const auto changed = [&](auto change) {
    CompileInput input = input_;
    change(input);
    return compile_key(*nvrtc_, input, nvrtc_options(input));
  };
  const std::set<std::string> keys = {changed([](CompileInput&) {}),
                                      changed([](CompileInput& input) { input.source += " "; }),
                                      changed([](CompileInput& input) { input.file_name = "k.cu"; }),
                                      changed([](CompileInput& input) { input.entry = "l"; }),
                                      changed([](CompileInput& input) { input.others = {"l"}; }),
                                      changed([](CompileInput& input) { input.arch = "sm_90a"; }),
                                      changed([](CompileInput& input) { input.cpp_standard = 20; }),
                                      changed([](CompileInput& input) { input.lineinfo = true; })};
  EXPECT_EQ(keys.size(), 8u);
}

TEST_F(CompileOnce, AFailureIsNotKept) {
  input_.source = "extern \"C\" __global__ void k(float* y) { y[0] = 1 }\n";
  std::string log;
  EXPECT_EQ(compile_once(results_, *nvrtc_, input_, &log).status().code(), Code::kCompileFailed);
  EXPECT_NE(log, "");
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace hstujit
