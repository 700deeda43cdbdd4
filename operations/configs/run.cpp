// Runs instances on generated input, on either backend, and compares with the float64 reference, and launches with one
// another, when asked to.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <system_error>

#include "compiler/spec/batch.h"
#include "compiler/support/memory.h"
#include "operations/configs/repeats.h"
#include "operations/tuning/data/strided_data.h"

namespace hstujit {

namespace {

constexpr int64_t kExtraRowsOfARun = 3;

// Tells how long something takes already: progress comes from the calling thread alone.
using Tell = std::function<void(const std::string& what, int64_t seconds)>;

// Does work of the host that may take minutes on another thread, and tells every few seconds what it is.
void work_telling(const Tell& tell, const std::string& what, const std::function<void()>& work) {
  constexpr std::chrono::seconds kEach{5};
  std::future<void> done;
  try {
    done = std::async(std::launch::async, std::cref(work));
  } catch (const std::system_error&) {  // no thread is to be had
    return work();
  }
  for (auto waited = kEach; done.wait_for(kEach) != std::future_status::ready; waited += kEach)
    tell(what, waited.count());
  done.get();
}

template <typename Work>
auto telling(const Tell& tell, const std::string& what, const Work& work) {
  std::optional<decltype(work())> result;
  work_telling(tell, what, [&] { result.emplace(work()); });
  return *std::move(result);
}

Result<Outputs> run_on_host(Op& op, const ProblemData& problem, double* milliseconds) {
  Outputs memory = problem.images;
  std::vector<void*> addresses;
  for (auto& image : memory) addresses.push_back(image.data());
  const LaunchValues values(problem, addresses, {kDLCPU, 0});
  HSTUJIT_RETURN_IF_ERROR(op.prepare(problem.lengths.max_seq_len, -1));
  const auto start = std::chrono::steady_clock::now();
  HSTUJIT_RETURN_IF_ERROR(op.launch(values.values(), values.count(), nullptr));
  *milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return memory;
}

Result<Outputs> run_on_device(Engine& engine, Op& op, const ProblemData& problem, int ordinal, double* milliseconds) {
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine.driver());
  HSTUJIT_ASSIGN_OR_RETURN(const ContextGuard guard, ContextGuard::enter(driver, ordinal));
  HSTUJIT_RETURN_IF_ERROR(op.prepare(problem.lengths.max_seq_len, guard.device().ordinal));
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceProblem device, DeviceProblem::upload(driver, problem, guard.device().ordinal));
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceStream stream, DeviceStream::create(driver));
  HSTUJIT_ASSIGN_OR_RETURN(const DeviceBuffer workspace, make_workspace(driver, op, device, stream.get()));
  HSTUJIT_RETURN_IF_ERROR(stream.synchronize());
  const auto start = std::chrono::steady_clock::now();
  HSTUJIT_RETURN_IF_ERROR(
      op.launch(device.values(), device.count(), stream.get(), {workspace.data(), workspace.size()}));
  HSTUJIT_RETURN_IF_ERROR(stream.synchronize());
  *milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return device.download_outputs();
}

// Contiguous tensors first, then slices of wider ones: the answer must be as good.
Status check(const ProblemData& problem, const Outputs& outputs,
             const std::function<Result<Outputs>(const ProblemData&)>& run, const Tell& tell, Json& row) {
  const std::vector<HostValue> reference =
      telling(tell, "float64 reference", [&] { return reference_outputs(problem); });
  const auto agreement_of = [&](const ProblemData& data, const Outputs& found) {
    return telling(tell, "comparison", [&] { return compare(data, reference, found); });
  };
  Agreement agreement = agreement_of(problem, outputs);
  if (agreement.good()) {
    const ProblemData strided = telling(tell, "strided input", [&] { return spread(problem); });
    HSTUJIT_ASSIGN_OR_RETURN(const Outputs strided_outputs, run(strided));
    const double error = agreement.error;
    agreement = agreement_of(strided, strided_outputs);
    agreement.error = std::max(agreement.error, error);
    if (!agreement.good()) agreement.sentence = "with strided tensors, " + agreement.sentence;
  }
  row["error"] = agreement.error;
  row["bound"] = agreement.bound;
  row["agrees"] = agreement.good();
  return agreement.good() ? Status() : Status(Code::kCheckFailed, agreement.sentence);
}

// The launches after the first.
Status repeat(Engine& engine, const Op& op, const OperationOptions& options, const Task& task,
              const ProblemData& problem, const Outputs& first, double milliseconds, Json& row) {
  const auto launch_again = [&]() -> Result<Repeats> {
    if (options.backend == Backend::kHost) return repeat_on_host(op, problem, first, options.repeats);
    HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine.driver());
    HSTUJIT_ASSIGN_OR_RETURN(const ContextGuard guard, ContextGuard::enter(driver, options.device));
    return repeat_on_device(driver, guard.device().ordinal, op, problem, first, options.repeats, milliseconds);
  };
  HSTUJIT_ASSIGN_OR_RETURN(const Repeats repeats, launch_again());
  repeats.write(row);
  return task.restriction.deterministic ? repeats.must_be_equal() : Status();
}

Status run_task(const EnginePtr& engine, const Config& config, const OperationOptions& options, const Task& task,
                const Tell& tell, Json& row) {
  const int64_t max_rows = options.max_rows > 0 ? options.max_rows : kAllRows;
  const DrawnFor use = options.check ? DrawnFor::kChecking : DrawnFor::kRunning;
  HSTUJIT_ASSIGN_OR_RETURN(const Lengths lengths,
                           draw_lengths(*task.instance, task.direction, task.max_seq_len, use, max_rows));
  row["sequences"] = lengths.rows.size();
  row["rows"] = lengths.total_rows();
  row["sequences_left_out"] = batch_sequences(*task.instance) - static_cast<int64_t>(lengths.rows.size());
  if (!lengths.rows_of(kQueryAxis).empty()) row["query_rows"] = lengths.total_rows(kQueryAxis);
  HSTUJIT_ASSIGN_OR_RETURN(const ProblemData problem, telling(tell, "generated input", [&] {
                             return make_problem_data(task.instance->spec, task.direction, lengths, options.seed,
                                                      kExtraRowsOfARun, task.instance->alpha);
                           }));
  if (options.backend == Backend::kCuda) {
    HSTUJIT_ASSIGN_OR_RETURN(const DeviceSpec device, engine->device(options.device));
    write_batch_class(row, task_of_batch(task, lengths, device).bucket.batch_class);
  }
  HSTUJIT_ASSIGN_OR_RETURN(const auto op, make_op(engine, config, task, options.backend));
  double milliseconds = 0;
  const auto run = [&](const ProblemData& data) -> Result<Outputs> {
    if (options.backend == Backend::kCuda) return run_on_device(*engine, *op, data, options.device, &milliseconds);
    return telling(tell, "host backend", [&] { return run_on_host(*op, data, &milliseconds); });
  };
  HSTUJIT_ASSIGN_OR_RETURN(const Outputs outputs, run(problem));
  row["ms"] = milliseconds;
  Status checked = options.check ? check(problem, outputs, run, tell, row) : Status();
  if (options.repeats <= 1) return checked;
  Status repeated = repeat(*engine, *op, options, task, problem, outputs, milliseconds, row);
  return checked.ok() ? repeated : checked;
}

}  // namespace

OperationResult run(const EnginePtr& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto tasks = list_launches(*engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  if (options.backend == Backend::kHost && options.device != 0) {
    return {Json::object(), Status(Code::kInvalidArgument, fmt::format("device is {}; the host backend runs on no CUDA "
                                                                       "device, leave it out",
                                                                       options.device))};
  }
  // Before any input, which may take minutes to make.
  const Status backend =
      options.backend == Backend::kCuda ? engine->device(options.device).status() : engine->host().status();
  if (!backend.ok()) return {Json::object(), backend};
  Json rows = Json::array();
  for (const Task& task : *tasks) {
    // Before it: a large batch takes minutes on the host.
    report_progress(options, rows.size(), tasks->size(), task.label());
    const Tell tell = [&](const std::string& what, int64_t seconds) {
      report_progress(options, rows.size(), tasks->size(),
                      task.label() + ", " + what + ", " + std::to_string(seconds) + " s");
    };
    Json row = task.to_json();
    const Status status = within_memory("its data", [&] { return run_task(engine, config, options, task, tell, row); });
    if (!status.ok()) {
      row["failure"] = error_json(status);
      result.fail(status.with_context(task.label()));
    }
    rows.push_back(std::move(row));
  }
  report_progress(options, tasks->size(), tasks->size(), "done");
  result.report = {{"backend", options.backend == Backend::kHost ? "host" : "cuda"},
                   {"checked", options.check},
                   {"seed", options.seed},
                   {"runs", std::move(rows)}};
  return result;
}

}  // namespace hstujit
