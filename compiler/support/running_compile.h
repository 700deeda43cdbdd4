// exit() destroys static objects of NVRTC and LLVM, which a compile of another thread still uses.
#pragma once

#include "compiler/support/status.h"

namespace hstujit {

// Of whoever calls them, for that long. exit() waits for those that run, a minute at most, and lets no more begin. A
// compile may be part of another one.
class RunningCompile {
 public:
  RunningCompile();
  RunningCompile(const RunningCompile&) = delete;
  RunningCompile& operator=(const RunningCompile&) = delete;
  ~RunningCompile();

  // An error once the process ends.
  Status status() const;

 private:
  bool may_run_ = false;
};

}  // namespace hstujit
