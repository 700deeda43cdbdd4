// A worker process: started with one end of a socket pair as its descriptor kWorkerSocket, killed and reaped with the
// object. Started by exec, never by fork alone: the caller is a process with threads and perhaps a CUDA context.
#pragma once

#include <sys/types.h>

#include <string>

#include "runtime/tuning/worker_channel.h"

namespace hstujit {

inline constexpr int kWorkerSocket = 3;

class WorkerProcess {
 public:
  // Runs `program`, which inherits the environment, standard output and error, and no other descriptor than the socket.
  // kNotFound when there is no such program, kIo for everything else.
  static Result<WorkerProcess> start(const std::string& program);

  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  ~WorkerProcess();

  WorkerChannel& channel() { return channel_; }
  pid_t id() const { return id_; }

  // Kills it if it still runs, waits for its end and says how it ended: "was killed by signal 11 (Segmentation fault)",
  // "exited with status 1". `grace`: how long it may take to end by itself first.
  std::string end(std::chrono::milliseconds grace);

 private:
  WorkerProcess(pid_t id, Descriptor socket) : id_(id), channel_(std::move(socket)) {}

  pid_t id_ = -1;  // -1: reaped
  WorkerChannel channel_;
};

}  // namespace hstujit
