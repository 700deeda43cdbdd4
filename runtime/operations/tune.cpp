// Times the candidates of every key that a config needs, on one GPU.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/operations/operation.h"
#include "runtime/tuning/tune_key.h"

namespace hstujit {

namespace {

Json row_json(const Task& task, const TuneReport& tuned) {
  Json row = task.to_json();
  row["key"] = tuning_digest(tuned.record.key);
  row["workload"] = tuned.record.workload;
  row["winner"] = to_json(tuned.winner);
  row["winner_us"] = tuned.winner_us;
  row["winner_spread_us"] = tuned.winner_spread_us;
  row["heuristic"] = to_json(tuned.heuristic);
  row["heuristic_us"] = tuned.heuristic_us;
  row["candidates"] = tuned.candidates;
  row["timed"] = tuned.timed;
  row["resumed"] = tuned.resumed;
  row["skipped"] = tuned.skipped;
  row["restarts"] = tuned.restarts;
  if (!tuned.ended_early.empty()) row["ended_early"] = tuned.ended_early;
  row["seconds"] = tuned.seconds;
  row["times"] = Json::array();
  for (const TimedCandidate& timed : tuned.record.timings()) {
    const double drift = tuned.record.drift(timed);
    row["times"].push_back({{"config", Json::parse(timed.config, nullptr, false)},
                            {"median_us", timed.median_us * drift},
                            {"spread_us", timed.spread_us * drift}});
  }
  row["rejected"] = Json::array();
  for (const UntimedCandidate& rejected : tuned.record.rejected) {
    row["rejected"].push_back({{"config", Json::parse(rejected.config, nullptr, false)},
                               {"reason", rejected.reason},
                               {"detail", rejected.detail}});
  }
  return row;
}

}  // namespace

OperationResult tune(Engine& engine, const Config& config, const OperationOptions& options) {
  OperationResult result;
  const auto tasks = list_keys(engine, config, options.op_name);
  if (!tasks.ok()) return {Json::object(), tasks.status()};
  const auto device = engine.device(options.device);
  if (!device.ok()) return {Json::object(), device.status()};

  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const double budget = options.budget_s > 0 ? options.budget_s : config.tuning.budget_s;
  Json rows = Json::array();
  for (size_t i = 0; i < tasks->size(); ++i) {
    const Task& task = (*tasks)[i];
    const double used = std::chrono::duration<double>(Clock::now() - start).count();
    TunerOptions tuner;
    // What earlier keys left over goes to the later ones.
    tuner.budget_s = std::max(0.0, budget - used) / static_cast<double>(tasks->size() - i);
    tuner.jobs = options.jobs;
    tuner.progress = [&](size_t done, size_t total, const std::string& what) {
      report_progress(options, done, total, fmt::format("{}: {}", task.label(), what));
    };
    const auto tuned =
        tune_on_device(engine, *task.instance, task.direction, options.device, *device, task.bucket, tuner);
    if (tuned.ok()) {
      rows.push_back(row_json(task, *tuned));
      continue;
    }
    Json row = task.to_json();
    row["error"] = error_json(tuned.status());
    rows.push_back(std::move(row));
    result.fail(tuned.status().with_context(task.label()));
  }
  result.report = {{"device", to_json(*device)},
                   {"budget_s", budget},
                   {"seconds", std::chrono::duration<double>(Clock::now() - start).count()},
                   {"keys", std::move(rows)}};
  return result;
}

}  // namespace hstujit
