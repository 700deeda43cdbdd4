// exit() in the midst of a compile waits for it, also where the compile has made static objects meanwhile.
#include "compiler/support/running_compile.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

namespace hstujit {
namespace {

constexpr auto kMoment = std::chrono::milliseconds(100);
constexpr int kDestroyed = 3;
std::atomic<bool> made{false}, destroyed{false};

// Ends the process with kDestroyed where the object that the compile has made is destroyed before the compile is over.
template <typename Compile>
void compile_and_exit() {
  std::thread([] {
    {
      const Compile compile;
      std::atexit([] { destroyed = true; });
      std::this_thread::sleep_for(kMoment);
      made = true;
      for (int i = 0; i < 10; ++i) {
        if (destroyed) std::_Exit(kDestroyed);
        std::this_thread::sleep_for(kMoment / 10);
      }
    }
    std::this_thread::sleep_for(std::chrono::minutes(1));
  }).detach();
  while (!made) std::this_thread::sleep_for(kMoment / 10);
  std::exit(0);
}

TEST(RunningCompileDeathTest, ExitWaitsForAFirstCompile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(compile_and_exit<FirstCompile>(), testing::ExitedWithCode(0), "");
}

// Why it is needed: any other compile is waited for behind what it has made.
TEST(RunningCompileDeathTest, ExitDestroysWhatAnotherCompileHasMade) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(compile_and_exit<RunningCompile>(), testing::ExitedWithCode(kDestroyed), "");
}

// Compiles of the parent do not run in the child, which waits for nothing.
TEST(RunningCompileTest, AForkedChildEndsWithoutItsParentsCompiles) {
  const RunningCompile compile;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    {
      const RunningCompile its_own;
      if (!its_own.status().ok()) ::_exit(1);
    }
    std::exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(compile.status().ok());
}

}  // namespace
}  // namespace hstujit
