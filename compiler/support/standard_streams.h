// The standard streams of a program, whatever it was started with.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace hstujit {

// For the beginning of main. Standard input, output or error that is closed is opened such that using it fails as
// before, while no other file gets its number. A pipe whose reader has gone and a file at the limit of its size make a
// write fail, and do not end the process.
inline void protect_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // The system gives the lowest free number: those before are taken already.
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) continue;
    const int wrong_way = number == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    static_cast<void>(::open("/dev/null", wrong_way));
  }
}

}  // namespace hstujit
