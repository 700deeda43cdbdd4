// Times instances beside the device's ceilings, all in one run.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/generator/generator_digest.h"
#include "compiler/support/date.h"
#include "compiler/support/memory.h"
#include "operations/configs/operation.h"
#include "operations/tuning/timing/candidate_bench.h"
#include "operations/tuning/timing/ceilings.h"

namespace hstujit {

namespace {

constexpr int kDefaultRepeats = 50;

// One instance, ready to be launched.
struct Timed {
  Task task;
  std::unique_ptr<Op> op;
  DeviceProblem problem;
  DeviceBuffer workspace;
  Work work;
  Lengths lengths;
  std::vector<std::pair<Task, KernelChoice>> kernels;  // one, or those of a program's steps
};

Result<std::vector<std::pair<Task, KernelChoice>>> choices_of(Engine& engine, const Config& config,
                                                              const DeviceSpec& device, const Task& launch,
                                                              const Lengths& lengths) {
  std::vector<std::pair<Task, KernelChoice>> kernels;
  for (const Task& listed : kernels_of(engine, config, launch)) {
    const Task kernel = task_of_batch(listed, lengths, device);
    HSTUJIT_ASSIGN_OR_RETURN(KernelChoice choice, choose_kernel(engine, *kernel.instance->spec, kernel.direction,
                                                                device, kernel.bucket, kernel.restriction));
    kernels.emplace_back(kernel, std::move(choice));
  }
  return kernels;
}

Result<Timed> make_timed(const EnginePtr& engine, const Config& config, const OperationOptions& options,
                         const DeviceSpec& device, const DeviceTimer& timer, const Task& listed) {
  HSTUJIT_ASSIGN_OR_RETURN(const Lengths lengths,
                           draw_lengths(*listed.instance, listed.direction, listed.max_seq_len, DrawnFor::kTiming));
  const Task task = task_of_batch(listed, lengths, device);
  HSTUJIT_ASSIGN_OR_RETURN(const CudaDriverPtr driver, engine->driver());
  HSTUJIT_ASSIGN_OR_RETURN(auto op, make_op(engine, config, task, Backend::kCuda));
  HSTUJIT_RETURN_IF_ERROR(op->prepare(task.max_seq_len, options.device));
  HSTUJIT_ASSIGN_OR_RETURN(const ProblemData data, make_timing_data(task.instance->spec, task.direction, lengths,
                                                                    options.seed, task.instance->alpha));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceProblem problem, DeviceProblem::upload(driver, data, options.device));
  HSTUJIT_ASSIGN_OR_RETURN(DeviceBuffer workspace, make_workspace(driver, *op, problem, timer.stream()));
  HSTUJIT_ASSIGN_OR_RETURN(auto kernels, choices_of(*engine, config, device, listed, lengths));
  return Timed{task,
               std::move(op),
               std::move(problem),
               std::move(workspace),
               task.instance->spec->work(task.direction, lengths),
               lengths,
               std::move(kernels)};
}

Json row_json(const Timed& timed, const TimeSummary& time, const Ceilings& ceilings) {
  Json row = timed.task.to_json();
  const double seconds = time.median_ms * 1e-3;
  const double memory_s = timed.work.bytes / ceilings.copy_bytes_per_s;
  const double compute_s = ceilings.matmul_flops_per_s > 0 ? timed.work.flops / ceilings.matmul_flops_per_s : 0;
  const double limit_s = std::max(memory_s, compute_s);
  row["rows"] = timed.lengths.total_rows();
  if (!timed.lengths.rows_of(kQueryAxis).empty()) row["query_rows"] = timed.lengths.total_rows(kQueryAxis);
  const auto write_choice = [](const KernelChoice& choice, Json& json) {
    json["config"] = to_json(choice.config);
    json["describe"] = describe(choice.config);
    choice.write(json);
  };
  if (timed.task.instance->spec->program(timed.task.direction) == nullptr) {
    write_choice(timed.kernels.front().second, row);
  } else {
    row["steps"] = Json::array();
    for (const auto& [kernel, choice] : timed.kernels) {
      Json step = {{"op", kernel.instance->spec->op()}, {"direction", to_string(kernel.direction)}};
      write_choice(choice, step);
      row["steps"].push_back(std::move(step));
    }
  }
  row["median_ms"] = time.median_ms;
  row["spread"] = time.spread;
  row["samples"] = time.samples;
  row["gflop"] = timed.work.flops * 1e-9;
  row["bytes"] = timed.work.bytes;
  row["tflop_per_s"] = timed.work.flops / seconds * 1e-12;
  row["gb_per_s"] = timed.work.bytes / seconds * 1e-9;
  row["limit_ms"] = limit_s * 1e3;
  row["limit_by"] = memory_s > compute_s ? "memory" : "compute";
  row["fraction_of_limit"] = limit_s / seconds;
  return row;
}

Json environment_json(Engine& engine, const CudaDriver& driver, const DeviceSpec& device) {
  Json json = {{"date", utc_date()},         {"gpu", device.name},           {"arch", device.arch},
               {"driver", driver.version()}, {"library", library_version()}, {"generator", generator_digest()},
               {"nvrtc", Json::array()}};
  for (const StoredArtifact& artifact : engine.kernels().store().list()) {
    const std::string& version = artifact.metadata.info.nvrtc;
    if (!version.empty() && std::find(json["nvrtc"].begin(), json["nvrtc"].end(), version) == json["nvrtc"].end()) {
      json["nvrtc"].push_back(version);
    }
  }
  return json;
}

}  // namespace

OperationResult bench(const EnginePtr& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto tasks = list_launches(*engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = engine->device(options.device);
  if (!device.ok()) return {Json::object(), device.status()};
  const auto driver = engine->driver();
  if (!driver.ok()) return {Json::object(), driver.status()};
  const auto guard = ContextGuard::enter(*driver, options.device);
  if (!guard.ok()) return {Json::object(), guard.status()};
  auto timer = DeviceTimer::create(*driver, device->l2_bytes);
  if (!timer.ok()) return {Json::object(), timer.status()};
  const auto ceilings = measure_ceilings(*driver, *device, *timer);
  if (!ceilings.ok()) return {Json::object(), ceilings.status()};

  const int repeats = options.repeats > 0 ? options.repeats : kDefaultRepeats;
  Json rows = Json::array();
  size_t done = 0;
  for (const Task& task : *tasks) {
    report_progress(options, done++, tasks->size(), task.label());
    // One problem at a time: the tensors of a whole grid would not fit in device memory together.
    Result<Json> row = within_memory("its data", [&]() -> Result<Json> {
      HSTUJIT_ASSIGN_OR_RETURN(const Timed timed, make_timed(engine, config, options, *device, *timer, task));
      const LaunchFunction launch = [&](cuda::Stream stream) {
        return timed.op->launch(timed.problem.values(), timed.problem.count(), stream,
                                {timed.workspace.data(), timed.workspace.size()});
      };
      HSTUJIT_ASSIGN_OR_RETURN(const auto samples, timer->time({launch}, repeats));
      return row_json(timed, summarise(samples[0]), *ceilings);
    });
    if (!row.ok()) {
      result.fail(row.status().with_context(task.label()));
      Json failed = task.to_json();
      failed["error"] = error_json(row.status());
      row = std::move(failed);
    }
    rows.push_back(*std::move(row));
  }
  report_progress(options, tasks->size(), tasks->size(), "done");
  result.report = {{"environment", environment_json(*engine, **driver, *device)},
                   {"ceilings",
                    {{"copy_gb_per_s", ceilings->copy_bytes_per_s * 1e-9},
                     {"matmul_tflop_per_s", ceilings->matmul_flops_per_s * 1e-12},
                     {"matmul_source", ceilings->matmul_source}}},
                   {"repeats", repeats},
                   {"results", std::move(rows)}};
  return result;
}

}  // namespace hstujit
