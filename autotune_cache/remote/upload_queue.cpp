#include "autotune_cache/remote/upload_queue.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace hstujit {

struct UploadQueue::Waiting {
  std::string name;
  size_t bytes = 0;
  Upload upload;
};

// The thread has a share of it. A forked child has no such thread to give that back: nothing of this is destroyed
// there, neither the lock that may look held nor the thread, whose stack is no longer the child's.
struct UploadQueue::State {
  std::atomic<bool> stop{false};
  std::atomic<size_t> failed{0};
  std::mutex mutex;  // of what follows; not held over an upload
  std::condition_variable changed;
  std::deque<Waiting> waiting;
  size_t bytes = 0;  // of those that wait
  bool busy = false;
  bool closing = false;
  bool dropped = false, threadless = false;  // logged
  std::thread thread;
};

UploadQueue::UploadQueue(size_t max_uploads, size_t max_bytes, std::chrono::milliseconds last_wait, Log log)
    : max_uploads_(max_uploads),
      max_bytes_(max_bytes),
      last_wait_(last_wait),
      log_(std::move(log)),
      owner_(::getpid()),
      state_(std::make_shared<State>()) {}

UploadQueue::~UploadQueue() {
  if (::getpid() != owner_) return;
  const bool has_thread = state_->thread.joinable();
  size_t dropped = 0;
  {
    std::unique_lock lock(state_->mutex);
    state_->closing = true;
    state_->changed.notify_all();
    if (has_thread)
      state_->changed.wait_for(lock, last_wait_, [&] { return state_->waiting.empty() && !state_->busy; });
    dropped = state_->waiting.size() + (state_->busy ? 1 : 0);
    state_->waiting.clear();
    state_->stop = true;
  }
  if (has_thread) state_->thread.join();
  dropped += state_->failed;
  if (dropped > 0) {
    const char* const reason = has_thread ? "the remote cache did not take them in time, or memory was short"
                                          : "the system had no thread for them";
    log_.event(LogCategory::kCache, "uploads_dropped", {{"count", dropped}, {"reason", reason}});
  }
}

void UploadQueue::work(State& state) {
  for (;;) {
    Upload upload;
    {
      std::unique_lock lock(state.mutex);
      state.busy = false;
      state.changed.notify_all();
      state.changed.wait(lock, [&] { return state.closing || !state.waiting.empty(); });
      if (state.waiting.empty()) return;
      upload = std::move(state.waiting.front().upload);
      state.bytes -= state.waiting.front().bytes;
      state.waiting.pop_front();
      state.busy = true;
    }
    try {
      upload(state.stop);
    } catch (const std::exception&) {
      ++state.failed;  // for want of memory, at most
    }
  }
}

void UploadQueue::add(const std::string& name, size_t bytes, Upload upload) {
  if (::getpid() != owner_) return;
  bool taken = false;
  {
    const std::lock_guard lock(state_->mutex);
    taken = take({name, bytes, std::move(upload)});
    if (taken && start()) {
      state_->changed.notify_all();
      return;
    }
    if (std::exchange(taken ? state_->threadless : state_->dropped, true)) return;
  }
  if (taken) {
    log_.event(LogCategory::kCache, "uploads_wait",
               {{"reason", "the system has no thread for them; they go with a later upload, and this is said once"}});
  } else {
    log_.event(LogCategory::kCache, "uploads_dropped",
               {{"count", 1}, {"reason", "the queue of uploads to the remote cache is full; this is said once"}});
  }
}

bool UploadQueue::take(Waiting waiting) {
  std::deque<Waiting>& all = state_->waiting;
  const auto same =
      std::find_if(all.begin(), all.end(), [&](const Waiting& other) { return other.name == waiting.name; });
  const bool replaces = same != all.end();
  const size_t others = state_->bytes - (replaces ? same->bytes : 0);
  if (waiting.bytes > max_bytes_ || others > max_bytes_ - waiting.bytes) return false;
  if (!replaces && all.size() >= max_uploads_) return false;
  const size_t bytes = others + waiting.bytes;
  if (replaces) {
    *same = std::move(waiting);
  } else {
    all.push_back(std::move(waiting));
  }
  state_->bytes = bytes;
  return true;
}

bool UploadQueue::start() {
  if (state_->thread.joinable()) return true;
  // The program's signals are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    state_->thread = std::thread([state = state_] { work(*state); });
  } catch (const std::exception&) {
    // The system gives no thread, or no memory for one, at the moment.
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

}  // namespace hstujit
