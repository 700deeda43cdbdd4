// exit() destroys static objects of NVRTC and LLVM, which a compile of another thread still uses.
#pragma once

#include <atomic>
#include <thread>

#include "compiler/support/status.h"

namespace hstujit {

// Counts a compile while it exists. exit() waits for the compiles that run, a minute at most, and lets no more begin. A
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
  const void* counted_in_ = nullptr;  // null: it must not run
};

// A compile in which a library makes static objects, as its first one is. exit() destroys those first that were made
// last: so the wait for compiles is registered anew every millisecond, and is behind the few of the last one at most.
class FirstCompile {
 public:
  FirstCompile();
  FirstCompile(const FirstCompile&) = delete;
  FirstCompile& operator=(const FirstCompile&) = delete;
  ~FirstCompile();

  Status status() const { return running_.status(); }

 private:
  const RunningCompile running_;
  std::atomic<bool> ended_{false};
  std::thread registering_;
};

}  // namespace hstujit
