// Writing without the signals that would end the process.
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace hstujit {

// SIGPIPE, of a pipe whose reader has gone, and SIGXFSZ, of a file at the limit of its size (ulimit -f), stay blocked
// in this thread during the object's life, and what came meanwhile is taken: the write that caused it fails with EPIPE
// or EFBIG. A library must not change what the whole process does with these signals.
class WriteSignalsBlocked {
 public:
  WriteSignalsBlocked() {
    sigset_t pending;
    sigset_t both;
    sigemptyset(&pending);
    sigpending(&pending);
    sigemptyset(&both);
    sigemptyset(&ours_);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      sigaddset(&both, signal);
      if (sigismember(&pending, signal) != 1) sigaddset(&ours_, signal);
    }
    pthread_sigmask(SIG_BLOCK, &both, &before_);
  }
  ~WriteSignalsBlocked() {
    const timespec now = {};
    while (sigtimedwait(&ours_, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WriteSignalsBlocked(const WriteSignalsBlocked&) = delete;
  WriteSignalsBlocked& operator=(const WriteSignalsBlocked&) = delete;

 private:
  sigset_t ours_;  // those that were not pending before
  sigset_t before_;
};

}  // namespace hstujit
