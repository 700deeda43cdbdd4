#include "operations/tuning/worker/worker_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/support/json.h"
#include "compiler/support/text.h"

namespace hstujit {

namespace {

using Json = nlohmann::ordered_json;

bool is_time(double milliseconds) {
  constexpr double kLongest = 1e9;  // twelve days
  return milliseconds > 0 && milliseconds < kLongest;
}

}  // namespace

Result<std::unique_ptr<WorkerBench>> WorkerBench::open(const std::string& program, const Json& problem,
                                                       const WorkerLimits& limits, const Cancellation& cancellation) {
  HSTUJIT_ASSIGN_OR_RETURN(WorkerProcess worker, WorkerProcess::start(program, kWorkerStartLimit, cancellation));
  std::unique_ptr<WorkerBench> bench(new WorkerBench(std::move(worker), limits));
  HSTUJIT_RETURN_IF_ERROR(bench->ask({{{"do", "open"}, {"problem", problem}}, ""}, limits.open).status());
  return bench;
}

Result<Json> WorkerBench::ask(const WorkerMessage& request, std::chrono::milliseconds limit) {
  if (state_ != BenchState::kSound) return Status(Code::kDriverError, "the worker process is gone");
  WorkerAnswer answer = worker_.ask(request, limit, [this](const Json& head) {
    launched_ = static_cast<int>(integer_member(head, "launching", launched_));
    return head.contains("launching");
  });
  if (!answer.answered()) {
    state_ = answer.fate == WorkerAnswer::Fate::kTimedOut ? BenchState::kTimedOut : BenchState::kCrashed;
    return Status(Code::kDriverError, answer.ending);
  }
  if (!answer.status.ok()) {
    // The device context of a worker may be lost while the process lives.
    const auto state = answer.message.head.find("state");
    if (state != answer.message.head.end() && *state != static_cast<int>(BenchState::kSound)) {
      state_ = *state == static_cast<int>(BenchState::kTimedOut) ? BenchState::kTimedOut : BenchState::kCrashed;
      worker_.end(std::chrono::milliseconds(0));
    }
    return answer.status;
  }
  return std::move(answer.message.head);
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
  } catch (const Json::exception& error) {
    return Status(Code::kInternal, fmt::format("the worker's answer to \"time\": {}", error.what()));
  }
  if (samples.size() != numbers.size()) {
    return Status(Code::kInternal,
                  fmt::format("the worker's answer to \"time\" has samples of {} candidates, not of {}", samples.size(),
                              numbers.size()));
  }
  for (const std::vector<double>& of_candidate : samples) {
    if (of_candidate.size() != static_cast<size_t>(repeats) || !std::ranges::all_of(of_candidate, is_time)) {
      return Status(
          Code::kInternal,
          fmt::format("the worker's answer to \"time\" has {} of a candidate; allowed: {} positive numbers of "
                      "milliseconds",
                      counted(static_cast<int64_t>(of_candidate.size()), "sample"), repeats));
    }
  }
  return samples;
}

}  // namespace hstujit
