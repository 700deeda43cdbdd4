// Compiles in a process of their own: what an NVRTC that crashes, hangs or runs out of memory does to its process, it
// does to the worker.
//
// The process is started by the first call, opens the compiler library once and stays for the calls that follow, since
// it hardly grows with them (docs/tuning.md). One that has died, or was killed because a call took too long, is
// replaced by the next call. It opens no driver and makes no CUDA context.
#pragma once

#include <optional>
#include <string>

#include "operations/tuning/worker/worker_process.h"
#include "runtime/engine/compiler_library.h"

namespace hstujit {

struct CompileWorkerSetup {
  std::string program;  // hstujit-worker
  CompilerRecipe recipe;
  std::chrono::milliseconds limit{60'000};  // of one call
  Cancellation cancellation = {};           // kills the process
};

// For one thread.
class CompileWorker {
 public:
  explicit CompileWorker(CompileWorkerSetup setup) : setup_(std::move(setup)) {}

  // As of KernelCompiler. kCompileFailed, too, when the process ended or was killed, and then reason() is not empty.
  Result<Blobs> emit(const CompileRequest& request) { return ask("emit", request); }
  Result<Blobs> compile(const CompileRequest& request) { return ask("compile", request); }

  // Reason of rejection of the last call's request, beyond its status:
  //   compile_timeout   it took longer than the limit
  //   compile_crashed   the process ended by itself
  //   compile_killed    the process was ended by another one, perhaps for its memory: nothing is known of the request
  const std::string& reason() const { return reason_; }

  pid_t process() const { return worker_ ? worker_->id() : -1; }

 private:
  Result<Blobs> ask(const char* action, const CompileRequest& request);
  Status start();

  CompileWorkerSetup setup_;
  std::optional<WorkerProcess> worker_;
  std::string reason_;
};

}  // namespace hstujit
