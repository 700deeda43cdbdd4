// The worker's side of worker_bench.h: answers requests about one problem until the tuner hangs up.
//
// Requests, by member "do", and what the answers have besides "code" and "message" of a Status, and after a failure
// "state", the BenchState:
//   open      problem                    makes the bench; must come first
//   load      config, body: the cubin    number
//   unload    number
//   validate  number
//   time      numbers, repeats           samples: milliseconds, by candidate
// While it times, {"launching": number} goes out before each launch of another candidate than the last.
// A request that is none of these, or lacks a member, is answered by kInvalidArgument.
#pragma once

#include <functional>
#include <memory>

#include "runtime/tuning/candidate_bench.h"
#include "runtime/tuning/worker_channel.h"

namespace hstujit {

using BenchOpener = std::function<Result<std::unique_ptr<CandidateBench>>(const nlohmann::ordered_json& problem)>;

// Ends the process when the other end has closed, also while a kernel hangs: a thread watches the socket.
[[noreturn]] void serve_bench(Descriptor socket, const BenchOpener& open_bench);

}  // namespace hstujit
