#include "runtime/engine/compile_slots.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

namespace hstujit {
namespace {

// The end of a condition variable waits for those that wait, none of whom goes on in a forked child.
TEST(CompileSlotsTest, AForkedChildEndsThoseThatItsParentsThreadsWaitFor) {
  std::optional<CompileSlots> slots(std::in_place, 1);
  std::optional<CompileSlots::Hold> held(std::in_place, *slots);
  std::jthread waiting([&] { const CompileSlots::Hold hold(*slots); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    slots.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  held.reset();
}

}  // namespace
}  // namespace hstujit
