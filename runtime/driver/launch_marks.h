// LaunchMarks: whether everything that was launched from a module is done.
//
// An event on each stream follows the last launch there. Only modules that may be unloaded before their context have
// marks, because an event takes a part of a microsecond of each launch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/driver/cuda_driver.h"

namespace hstujit {

class LaunchMarks {
 public:
  // A module that is launched on more streams than this stays loaded.
  static constexpr size_t kMaxStreams = 4;

  // Makes the events in the current context.
  explicit LaunchMarks(const CudaDriver& driver);
  LaunchMarks(const LaunchMarks&) = delete;
  LaunchMarks& operator=(const LaunchMarks&) = delete;

  // Follows a launch on `stream`. Waits for no lock. Any thread, also for one stream.
  void mark(cuda::Stream stream);

  // Whether all launches are done, and none of them can run again. A graph that captured a launch may, so then this is
  // false for good, as it is where the driver could not record an event. Waits for nothing. Not during a launch.
  bool are_done() const;

  // Gives the events back to the context, which must be current.
  void destroy_events();

 private:
  struct Mark {
    std::atomic<uint64_t> stream{0};  // identity of the stream and 1; 0: none yet
    cuda::Event event = nullptr;
  };

  bool record(cuda::Stream stream);

  const CudaDriver& driver_;
  std::atomic<bool> forever_{false};
  std::array<Mark, kMaxStreams> marks_;
};

// Lets this thread call what a capture of another thread forbids, such as a look at an event: nothing that is called
// here becomes part of a graph.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaDriver& driver);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const CudaDriver& driver_;
  cuda::CaptureMode mode_ = cuda::kCaptureRelaxed;  // the thread's own, meanwhile
};

}  // namespace hstujit
