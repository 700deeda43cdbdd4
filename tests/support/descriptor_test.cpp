#include "compiler/support/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "compiler/support/standard_streams.h"

namespace hstujit {
namespace {

// Result of `body` in a process whose standard streams are closed.
int without_standard_streams(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) ::close(number);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Descriptor, TakesNoNumberOfAStandardStream) {
  EXPECT_EQ(without_standard_streams([] {
              const Descriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
              const Descriptor second(::open("/dev/null", O_RDONLY | O_CLOEXEC));
              if (first.number() <= STDERR_FILENO || second.number() <= STDERR_FILENO) return 1;
              if (::fcntl(first.number(), F_GETFD) != FD_CLOEXEC) return 2;
              return ::fcntl(STDIN_FILENO, F_GETFD) < 0 ? 0 : 3;  // the number is free again
            }),
            0);
}

TEST(Descriptor, KeepsAnyOtherNumber) {
  const int number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(Descriptor(number).number(), number);
  EXPECT_FALSE(Descriptor(-1).valid());
}

TEST(StandardStreams, ThoseThatAreClosedFailAndKeepTheirNumbers) {
  EXPECT_EQ(without_standard_streams([] {
              protect_standard_streams();
              char byte = 0;
              if (::open("/dev/null", O_RDONLY) <= STDERR_FILENO) return 1;
              if (::read(STDIN_FILENO, &byte, 1) >= 0) return 2;
              return ::write(STDOUT_FILENO, &byte, 1) < 0 && ::write(STDERR_FILENO, &byte, 1) < 0 ? 0 : 3;
            }),
            0);
}

TEST(StandardStreams, APipeWithoutAReaderEndsNobody) {
  EXPECT_EQ(without_standard_streams([] {
              int ends[2];
              if (::pipe(ends) != 0) return 1;
              protect_standard_streams();
              ::close(ends[0]);
              return ::write(ends[1], "x", 1) < 0 ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace hstujit
