// Times the candidates of every key that a config needs or a recording lists, on one GPU.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "compiler/support/text.h"
#include "operations/configs/operation.h"
#include "operations/configs/shard.h"
#include "operations/tuning/data/workload.h"
#include "operations/tuning/tuner/tune_key.h"
#include "runtime/dispatch/batch_classes.h"
#include "runtime/dispatch/kernel_supply.h"
#include "runtime/dispatch/problem_bucket.h"

namespace hstujit {

namespace {

// All fields of a config of a record; the text as it is when this library does not know it.
Json config_json(const RecordedConfig& recorded) {
  Json json = json_or_null(recorded.text());
  const auto config = parse_kernel_config(json);
  return config.ok() ? to_json(*config) : json;
}

Json row_json(const Task& task, const TuneReport& tuned) {
  Json row = task.to_json();
  row["outcome"] = "tuned";
  row["key"] = tuning_digest(tuned.record.key);
  row["workload"] = tuned.record.workload;
  row["winner"] = to_json(tuned.winner);
  row["describe"] = describe(tuned.winner);
  if (tuned.staying) {
    row["staying"] = {{"winner", to_json(tuned.staying->winner)},
                      {"describe", describe(tuned.staying->winner)},
                      {"rows", tuned.staying->rows}};
  }
  row["winner_us"] = tuned.winner_us;
  row["winner_spread_us"] = tuned.winner_spread_us;
  row["heuristic"] = to_json(tuned.heuristic);
  row["heuristic_us"] = tuned.heuristic_us;
  row["candidates"] = tuned.candidates;
  row["left_out"] = tuned.left_out;
  row["timed"] = tuned.timed;
  row["resumed"] = tuned.resumed;
  row["skipped"] = tuned.skipped;
  row["restarts"] = tuned.restarts;
  if (!tuned.ended_early.empty()) row["ended_early"] = tuned.ended_early;
  row["seconds"] = tuned.seconds;
  row["times"] = Json::array();
  for (const TimedCandidate& timed : tuned.record.comparable_timings()) {
    row["times"].push_back(
        {{"config", config_json(timed.config)}, {"median_us", timed.median_us}, {"spread_us", timed.spread_us}});
  }
  row["rejected"] = Json::array();
  for (const TuningRejection& rejected : tuned.record.rejected) {
    row["rejected"].push_back(
        {{"config", config_json(rejected.config)}, {"reason", rejected.reason}, {"detail", rejected.detail}});
  }
  return row;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Gives every key of a call its fair part of the budget: time that earlier keys left over goes to the later ones.
TunerOptions tuner_options(const OperationOptions& options, const Tuning& tuning, const Task& task, double seconds_left,
                           size_t keys_left) {
  TunerOptions tuner;
  if (tuning.exhaustive) tuner.far_estimate = tuner.worst_estimate = std::numeric_limits<double>::infinity();
  tuner.budget_s = std::max(0.0, seconds_left) / static_cast<double>(keys_left);
  tuner.jobs = options.jobs;
  tuner.cancellation = options.cancellation;
  // By reference: the task outlives the tuning.
  tuner.progress = [&](size_t done, size_t total, const std::string& what) {
    report_progress(options, done, total, fmt::format("{}: {}", task.label(), what));
  };
  return tuner;
}

// The winner's cubin of a key that needs no timing.
Status compile_choice(Engine& engine, const Task& task, const DeviceSpec& device, const KernelChoice& choice,
                      Json& row) {
  HSTUJIT_ASSIGN_OR_RETURN(const SuppliedKernel kernel,
                           supply_kernel(engine, task.instance->spec, task.direction, device, task.bucket,
                                         task.restriction, choice, Supply::kCompile));
  row["outcome"] = kernel.hit ? "hit" : "compiled";
  row["key"] = tuning_digest(tuning_key(*task.instance->spec, task.direction, device, task.bucket, task.restriction));
  kernel.choice.write(row);
  row["winner"] = to_json(kernel.choice.config);
  row["describe"] = describe(kernel.choice.config);
  return {};
}

// Whether somebody has tuned the key meanwhile on lengths other than those that a recording's are made of: of these two
// winners the one that saw a model's lengths is to stay.
bool tuned_on_other_lengths(Engine& engine, const Task& task, const DeviceSpec& device, const KernelChoice& choice) {
  if (!choice.tuned) return false;
  for (const TuningKey& key :
       serving_keys(*task.instance->spec, task.direction, device, task.bucket, task.restriction)) {
    if (const auto record = engine.tuning().find(key)) {
      return record->workload != workload_name(tuning_lengths(*task.instance, task.direction, task.bucket, device));
    }
  }
  return false;
}

// The device that candidates are timed on.
Result<DeviceSpec> timed_device(Engine& engine, const OperationOptions& options) {
  if (const FrozenChoices* const frozen = engine.frozen()) {
    return Status(
        Code::kInvalidArgument,
        fmt::format("HSTUJIT_FROZEN is {}, under which nothing is timed; unset it to tune", frozen->origin()));
  }
  return engine.device(options.device);
}

bool is_of(const TuningKey& key, const DeviceSpec& device) {
  return key.device == device.name && key.arch == device.arch && key.sm_count == device.sm_count;
}

}  // namespace

OperationResult tune(Engine& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto tasks = list_keys(engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = timed_device(engine, options);
  if (!device.ok()) return {Json::object(), device.status()};

  std::vector<Task> classes = with_batch_classes(*tasks, *device);
  std::erase_if(classes,
                [&](const Task& task) { return !is_tuned(*task.instance, task.direction, task.bucket, *device); });
  const std::vector<Task> keys = tasks_of_shard(std::move(classes), *device, options.shard);
  const auto start = Clock::now();
  const double budget = options.budget_s > 0 ? options.budget_s : config.tuning.budget_s;
  Json rows = Json::array();
  for (size_t i = 0; i < keys.size() && !options.cancellation.requested(); ++i) {
    const Task& task = keys[i];
    const TunerOptions tuner =
        tuner_options(options, config.tuning, task, budget - seconds_since(start), keys.size() - i);
    const auto tuned = within_memory("its data", [&] {
      return tune_on_device(
          engine,
          tuning_request(*task.instance, task.direction, options.device, *device, task.bucket, task.restriction),
          tuner);
    });
    if (tuned.ok()) {
      rows.push_back(row_json(task, *tuned));
      continue;
    }
    if (options.cancellation.requested()) break;
    Json row = task.to_json();
    row["error"] = error_json(tuned.status());
    rows.push_back(std::move(row));
    result.fail(tuned.status().with_context(task.label()));
  }
  if (options.cancellation.requested()) return {Json::object(), options.cancellation.status("tune")};
  result.report = {
      {"device", to_json(*device)}, {"budget_s", budget}, {"seconds", seconds_since(start)}, {"keys", std::move(rows)}};
  fail_for_what_is_not_kept(engine, result);
  return result;
}

OperationResult tune_recording(Engine& engine, const Recording& recording, const OperationOptions& options) {
  OperationResult result;
  if (!options.op_name.empty()) {
    if (const Status known = recording.config.find(options.op_name).status(); !known.ok())
      return {Json::object(), known};
  }
  const auto device = timed_device(engine, options);
  if (!device.ok()) return {Json::object(), device.status()};
  if (!recording.warning.empty()) {
    engine.log().event(LogCategory::kTune, "recording", {{"warning", recording.warning}});
  }

  const auto start = Clock::now();
  const double budget = options.budget_s > 0 ? options.budget_s : recording.config.tuning.budget_s;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < recording.misses.size(); ++i) {
    if (options.op_name.empty() || recording.config.instances[i].name == options.op_name) chosen.push_back(i);
  }
  Json rows = Json::array();
  for (size_t done = 0; done < chosen.size() && !options.cancellation.requested(); ++done) {
    const MissRecord& miss = recording.misses[chosen[done]];
    const Instance& instance = recording.config.instances[chosen[done]];
    const Task task{InstancePtr(InstancePtr(), &instance),
                    instance.directions.front(),
                    miss.length,
                    {miss.key.bucket, miss.key.batch_class},
                    {.deterministic = miss.key.deterministic}};
    Json row = task.to_json();
    row["reason"] = to_string(miss.reason);
    row["length_mode"] = to_string(miss.length_mode);
    if (!is_of(miss.key, *device)) {
      row["outcome"] = "other_device";
      row["device"] = miss.key.device;
      rows.push_back(std::move(row));
      continue;
    }
    const auto work = [&]() -> Status {
      HSTUJIT_ASSIGN_OR_RETURN(const KernelChoice choice, choose_kernel(engine, *instance.spec, task.direction, *device,
                                                                        task.bucket, task.restriction));
      if (miss.reason == MissReason::kUncompiled || tuned_on_other_lengths(engine, task, *device, choice)) {
        return compile_choice(engine, task, *device, choice, row);
      }
      const TunerOptions tuner =
          tuner_options(options, recording.config.tuning, task, budget - seconds_since(start), chosen.size() - done);
      HSTUJIT_ASSIGN_OR_RETURN(
          const TuneReport tuned,
          tune_on_device(
              engine, tuning_request(instance, task.direction, options.device, *device, task.bucket, task.restriction),
              tuner));
      row.update(row_json(task, tuned));
      return {};
    };
    if (const Status status = within_memory("its data", work); !status.ok()) {
      row["error"] = error_json(status);
      const size_t line = recording.lines[chosen[done]];
      result.fail(status.with_context(fmt::format("{}:{}: {}", printable(recording.origin), line, task.label())));
    }
    rows.push_back(std::move(row));
    report_progress(options, done + 1, chosen.size(), task.label());
  }
  if (options.cancellation.requested()) return {Json::object(), options.cancellation.status("tune")};
  result.report = {{"device", to_json(*device)}, {"recording", recording.origin},   {"warning", recording.warning},
                   {"budget_s", budget},         {"seconds", seconds_since(start)}, {"keys", std::move(rows)}};
  fail_for_what_is_not_kept(engine, result);
  return result;
}

}  // namespace hstujit
