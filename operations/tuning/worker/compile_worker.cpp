#include "operations/tuning/worker/compile_worker.h"

#include "operations/tuning/worker/worker_compile.h"

namespace hstujit {

Status CompileWorker::start() {
  HSTUJIT_ASSIGN_OR_RETURN(WorkerProcess worker,
                           WorkerProcess::start(setup_.program, kWorkerStartLimit, setup_.cancellation));
  const WorkerAnswer answer =
      worker.ask({{{"do", "compiler"}, {"library", setup_.recipe.library}, {"nvrtc", setup_.recipe.nvrtc}}, ""},
                 kWorkerStartLimit);
  // Whatever ended it, it was no candidate.
  if (!answer.answered()) return Status(Code::kIo, answer.ending);
  HSTUJIT_RETURN_IF_ERROR(answer.status);
  worker_.emplace(std::move(worker));
  return {};
}

Result<Blobs> CompileWorker::ask(const char* action, const CompileRequest& request) {
  reason_.clear();
  if (!worker_) HSTUJIT_RETURN_IF_ERROR(start());
  const WorkerAnswer answer = worker_->ask({{{"do", action}, {"request", to_json(request)}}, ""}, setup_.limit);
  if (!answer.answered()) {
    worker_.reset();
    const bool timed_out = answer.fate == WorkerAnswer::Fate::kTimedOut;
    reason_ = timed_out ? "compile_timeout" : answer.from_outside ? "compile_killed" : "compile_crashed";
    return Status(Code::kCompileFailed, answer.ending);
  }
  HSTUJIT_RETURN_IF_ERROR(answer.status);
  return take_blobs(answer.message);
}

}  // namespace hstujit
