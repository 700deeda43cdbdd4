// The worker's side of worker_bench.h and compile_worker.h: answers requests until the tuner hangs up.
//
// Requests, by member "do", and what the answers have besides "code" and "message" of a Status, and after the failure
// of a bench "state", its BenchState:
//   generator                            generator: this build's, which WorkerProcess compares before all else
//   open      problem                    makes the bench; must come before what follows
//   load      config, body: the cubin    number
//   unload    number
//   validate  number
//   time      numbers, repeats           samples: milliseconds, by candidate
//   compiler  library, nvrtc             opens the compiler library; must come before what follows
//   emit      request                    blobs, of worker_compile.h, as of KernelCompiler
//   compile   request                    the same
// While it times, {"launching": number} goes out before each launch of another candidate than the last.
// A request that is none of these, or lacks a member, is answered by kInvalidArgument.
#pragma once

#include <functional>
#include <memory>

#include "operations/tuning/timing/candidate_bench.h"
#include "operations/tuning/worker/worker_channel.h"

namespace hstujit {

using BenchOpener = std::function<Result<std::unique_ptr<CandidateBench>>(const nlohmann::ordered_json& problem)>;

// Ends the process when the other end has closed, also while a kernel hangs: a thread watches the socket.
[[noreturn]] void serve_worker(Descriptor socket, const BenchOpener& open_bench);

}  // namespace hstujit
