#include "runtime/tuning/worker_bench.h"

#include <fmt/format.h>

namespace hstujit {

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// A worker whose socket has closed is about to end: this is how long its signal may take to show.
constexpr std::chrono::milliseconds kGrace{2'000};

}  // namespace

Result<std::unique_ptr<WorkerBench>> WorkerBench::open(const std::string& program, const Json& problem,
                                                       const WorkerLimits& limits) {
  HSTUJIT_ASSIGN_OR_RETURN(WorkerProcess worker, WorkerProcess::start(program));
  std::unique_ptr<WorkerBench> bench(new WorkerBench(std::move(worker), limits));
  HSTUJIT_RETURN_IF_ERROR(bench->ask({{{"do", "open"}, {"problem", problem}}, ""}, limits.open).status());
  return bench;
}

Result<Json> WorkerBench::ask(const WorkerMessage& request, std::chrono::milliseconds limit) {
  if (state_ != BenchState::kSound) return Status(Code::kDriverError, "the worker process is gone");
  const auto action = request.head.value("do", "");
  const auto deadline = Clock::now() + limit;
  WorkerMessage reply;
  WorkerChannel::End end = WorkerChannel::End::kClosed;
  bool answered = worker_.channel().send(request, deadline);
  while (answered && (answered = worker_.channel().receive(&reply, deadline, &end)) &&
         reply.head.contains("launching")) {
    launched_ = reply.head.value("launching", launched_);
  }
  if (!answered) {
    if (end == WorkerChannel::End::kTimeout) {
      worker_.end(std::chrono::milliseconds(0));
      state_ = BenchState::kTimedOut;
      return Status(Code::kDriverError, fmt::format("no answer to \"{}\" within {} s; the worker process was killed",
                                                    action, limit.count() / 1000.0));
    }
    state_ = BenchState::kCrashed;
    return Status(Code::kDriverError, fmt::format("the worker process {} during \"{}\"", worker_.end(kGrace), action));
  }
  try {
    const Code code = code_from(reply.head.at("code").get<int>());
    if (code != Code::kOk) {
      // The device context of a worker may be lost while the process lives.
      if (const int state = reply.head.value("state", 0); state != static_cast<int>(BenchState::kSound)) {
        state_ = state == static_cast<int>(BenchState::kTimedOut) ? BenchState::kTimedOut : BenchState::kCrashed;
        worker_.end(std::chrono::milliseconds(0));
      }
      return Status(code, reply.head.at("message").get<std::string>());
    }
  } catch (const nlohmann::json::exception& error) {
    return Status(Code::kInternal, fmt::format("the worker's answer to \"{}\": {}", action, error.what()));
  }
  return std::move(reply.head);
}

Result<int> WorkerBench::load(const CompiledCandidate& candidate) {
  HSTUJIT_ASSIGN_OR_RETURN(
      const Json reply, ask({{{"do", "load"}, {"config", to_json(candidate.config)}}, candidate.cubin}, limits_.load));
  const auto number = reply.find("number");
  if (number == reply.end() || !number->is_number_integer()) {
    return Status(Code::kInternal, "the worker's answer to \"load\" has no number");
  }
  return number->get<int>();
}

void WorkerBench::unload(int number) {
  // A failure shows at the next request.
  if (state_ == BenchState::kSound) static_cast<void>(ask({{{"do", "unload"}, {"number", number}}, ""}, limits_.load));
}

Status WorkerBench::validate(int number) {
  return ask({{{"do", "validate"}, {"number", number}}, ""}, limits_.validate).status();
}

Result<std::vector<std::vector<double>>> WorkerBench::time(const std::vector<int>& numbers, int repeats) {
  HSTUJIT_ASSIGN_OR_RETURN(const Json reply,
                           ask({{{"do", "time"}, {"numbers", numbers}, {"repeats", repeats}}, ""}, limits_.time));
  std::vector<std::vector<double>> samples;
  try {
    reply.at("samples").get_to(samples);
  } catch (const nlohmann::json::exception& error) {
    return Status(Code::kInternal, fmt::format("the worker's answer to \"time\": {}", error.what()));
  }
  if (samples.size() != numbers.size()) {
    return Status(Code::kInternal,
                  fmt::format("the worker's answer to \"time\" has samples of {} candidates, not of {}", samples.size(),
                              numbers.size()));
  }
  return samples;
}

}  // namespace hstujit
