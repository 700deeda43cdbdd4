// Uploads in the background: a bounded queue and one thread, which exists from the first upload on.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "compiler/support/log.h"

namespace hstujit {

class UploadQueue {
 public:
  // `stop` becomes true when the queue ends and cannot wait any longer.
  using Upload = std::function<void(const std::atomic<bool>& stop)>;

  UploadQueue(size_t max_uploads, size_t max_bytes, std::chrono::milliseconds last_wait, Log log);
  // Waits for what is queued, but no longer than `last_wait`; the rest is dropped, which is logged.
  ~UploadQueue();
  UploadQueue(const UploadQueue&) = delete;
  UploadQueue& operator=(const UploadQueue&) = delete;

  // Returns at once. What waits under the same name is replaced; what does not fit is dropped, which is logged once.
  // Where the system gives no thread, uploads wait for a later one that gets it, which is logged once, too.
  void add(const std::string& name, size_t bytes, Upload upload);

 private:
  struct Waiting;
  struct State;
  static void work(State& state);
  // Under the lock.
  bool take(Waiting waiting);  // false: there is no room
  bool start();                // false: there is no thread

  const size_t max_uploads_;
  const size_t max_bytes_;
  const std::chrono::milliseconds last_wait_;
  const Log log_;
  const int owner_;  // the process that has the thread: a forked child has none
  std::shared_ptr<State> state_;
};

}  // namespace hstujit
