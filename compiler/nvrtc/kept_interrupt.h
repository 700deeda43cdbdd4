// Keeps how the process takes SIGINT. NVRTC has a handler of its own for the first milliseconds of a compile, and puts
// the process's back by signal(), which restarts system calls: a Python that waits for a lock would be deaf to Ctrl-C
// from then on.
#pragma once

namespace hstujit {

// For the time of a compile, in any number of threads. Handlers that the process sets in that time are left alone.
class KeptInterrupt {
 public:
  KeptInterrupt();
  ~KeptInterrupt();
  KeptInterrupt(const KeptInterrupt&) = delete;
  KeptInterrupt& operator=(const KeptInterrupt&) = delete;
};

}  // namespace hstujit
