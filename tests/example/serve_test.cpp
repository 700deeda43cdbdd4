// examples/serve.cpp as its readers run it: on the host backend, and beside a driver that only pretends to launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/paths.h"
#include "tests/tools/program.h"

namespace hstujit {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kConfig = source_path("/examples/configs/serve.json");

Outcome serve(const std::vector<std::string>& options, const Variables& variables) {
  std::vector<std::string> command = {binary_path("/bin/example_serve"), "--config", kConfig};
  command.insert(command.end(), options.begin(), options.end());
  return run_program(command, variables);
}

class Serve : public testing::Test {
 protected:
  // A GPU machine that compiles nothing, and has no cache but what it is given.
  Variables server() const {
    return {{"HSTUJIT_CUDA_DRIVER", binary_path("/test_libraries/libhstujit_fake_cuda.so")},
            {"HSTUJIT_CACHE_DIR", (scratch_.path() / "empty").string()},
            {"HSTUJIT_COMPILER_LIBRARY", (scratch_.path() / "none.so").string()},
            // No kernel writes anything there, so memory has the same bytes from the beginning.
            {"MALLOC_PERTURB_", "1"}};
  }

  Scratch scratch_;
};

TEST_F(Serve, AnswersOfAllThreadsAreThoseOfOne) {
  const Outcome outcome = serve({"--backend", "host", "--requests", "200"}, {{"HSTUJIT_CACHE_DIR", scratch_.cache()}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith("32 threads, 200 requests: "), ContainsRegex(" [1-9][0-9]* requests/s\n"),
                                 ContainsRegex("latency: median [0-9.]+ ms, 95 % [0-9.]+ ms, 99 % [0-9.]+ ms\n")));
  EXPECT_EQ(outcome.last_line(), "0 answers differ from those of one thread");
}

TEST_F(Serve, AKernelThatIsMissingIsTheLibrarysSentence) {
  const Outcome outcome = serve({}, server());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err,
              AllOf(StartsWith("the kernel hstu_attention_forward_"),
                    HasSubstr("is in no cache directory, and the policy on a miss is \"fail\"; run hstujit prewarm")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "empty")) << "nothing is written";
}

TEST_F(Serve, ABundleIsAllThatItNeeds) {
  Variables origin = {{"HSTUJIT_CUDA_DRIVER", binary_path("/test_libraries/libhstujit_fake_cuda.so")},
                      {"HSTUJIT_CACHE_DIR", scratch_.cache()},
                      {"HSTUJIT_COMPILER_LIBRARY", binary_path("/test_libraries/libhstujit_fake_compiler.so")},
                      {"FAKE_COMPILER_SCRIPT", "{}"}};
  origin["FAKE_COMPILER_GENERATOR"] =
      hstujit_tool({"doctor", "--json"}).json()["library"]["generator"].get<std::string>();
  const std::string bundle = (scratch_.path() / "serve.hstujit").string();
  const Outcome prewarmed = hstujit_tool({"prewarm", "--config", kConfig}, origin);
  ASSERT_EQ(prewarmed.code, 0) << prewarmed.err;
  ASSERT_EQ(hstujit_tool({"cache", "export", bundle}, origin).code, 0);

  const Outcome outcome = serve({"--cache", bundle, "--requests", "500"}, server());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("32 threads, 500 requests: "));
  const Outcome small = serve({"--cache", bundle, "--requests", "3", "--threads", "2"}, server());
  EXPECT_EQ(small.code, 0) << small.err;
  EXPECT_THAT(small.out, StartsWith("2 threads, 3 requests: "));
}

TEST_F(Serve, WhatIsMissingOfAMachineAndWrongOptionsAreSentences) {
  Variables without = server();
  without["HSTUJIT_CUDA_DRIVER"] = (scratch_.path() / "none.so").string();
  const Outcome no_driver = serve({}, without);
  EXPECT_EQ(no_driver.code, 1);
  EXPECT_THAT(no_driver.err, AllOf(StartsWith("there is no CUDA driver: "), HasSubstr("none.so")));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--backend", "gpu"}, {"--threads", "0"}, {"--threads"}, {"--unknown", "3"}}) {
    const Outcome outcome = serve(wrong, server());
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err,
                AllOf(StartsWith("serve: " + wrong[0]), HasSubstr(" is no option; allowed: --config FILE")));
  }
}

}  // namespace
}  // namespace hstujit
