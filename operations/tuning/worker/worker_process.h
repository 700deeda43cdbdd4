// A worker process: started with one end of a socket pair as its descriptor kWorkerSocket, killed and reaped with the
// object. Started by exec, never by fork alone: the caller is a process with threads and perhaps a CUDA context.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>

#include "compiler/support/status.h"
#include "operations/tuning/worker/worker_channel.h"

namespace hstujit {

inline constexpr int kWorkerSocket = 3;
// Loading from a slow file system takes its time.
inline constexpr std::chrono::milliseconds kWorkerStartLimit{60'000};

struct WorkerEnding {
  std::string text;  // "was killed by signal 11 (Segmentation fault)", "exited with status 1"
  // Another process may have ended it, such as the kernel when memory runs out: nothing follows about what it did.
  bool from_outside = false;
};

// Outcome of a request.
struct WorkerAnswer {
  enum class Fate { kAnswered, kTimedOut, kDied };
  Fate fate = Fate::kAnswered;
  WorkerMessage message;      // kAnswered
  Status status;              // kAnswered: the worker's own
  std::string ending;         // else: a sentence about the process, which has ended
  bool from_outside = false;  // kDied: WorkerEnding's

  bool answered() const { return fate == Fate::kAnswered; }
};

class WorkerProcess {
 public:
  // Runs `program`, which inherits the environment, standard output and error, and no other descriptor than the socket.
  // Returns when it has said what build it is of, within `limit`. kNotFound when there is no such program, kNoCompiler
  // when it is of another build, kIo for everything else.
  // Where `cancellation` is requested, every call that waits for the process kills it, as after `limit`.
  static Result<WorkerProcess> start(const std::string& program, std::chrono::milliseconds limit = kWorkerStartLimit,
                                     const Cancellation& cancellation = {});

  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  ~WorkerProcess();

  WorkerChannel& channel() { return channel_; }
  pid_t id() const { return id_; }

  // Sends a request and waits for its answer; messages that come before it are for `take_note`, which says whether one
  // is none. A worker that has not answered after `limit` is killed.
  WorkerAnswer ask(const WorkerMessage& request, std::chrono::milliseconds limit,
                   const std::function<bool(const nlohmann::ordered_json&)>& take_note = {});

  // Kills it if it still runs, waits for its end and says how it ended. `grace`: how long it may take to end by itself
  // first.
  WorkerEnding end(std::chrono::milliseconds grace);

 private:
  WorkerProcess(pid_t id, Descriptor socket, const Cancellation& cancellation)
      : id_(id), channel_(std::move(socket), cancellation) {}

  pid_t id_ = -1;  // -1: reaped
  WorkerChannel channel_;
};

}  // namespace hstujit
