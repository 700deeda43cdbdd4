// hstujit tune: times candidates on the GPUs and keeps the winners.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "compiler/support/json.h"
#include "compiler/support/memory.h"
#include "compiler/support/numbers.h"
#include "compiler/support/text.h"
#include "compiler/support/threads.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/progress.h"
#include "tools/hstujit/report.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

struct TuneOptions : Options {
  std::string recording;
  std::string device_list;
  std::vector<int> devices = {0};  // that it names
};

// Returns what is wrong with the list; CLI11 would pass over an empty item.
std::string read_devices(const std::string& text, std::vector<int>& devices) {
  devices.clear();
  for (const std::string& item : split(text, ',')) {
    const std::optional<uint64_t> device = whole_number(item);
    if (!device || *device > kLargestDevice)
      return fmt::format("{} is not allowed; it must be whole numbers from 0 to {}, such as 0,1", quote(text),
                         kLargestDevice);
    devices.push_back(static_cast<int>(*device));
    if (std::count(devices.begin(), devices.end(), devices.back()) > 1)
      return fmt::format("{} names a GPU twice; kernels that share one would time each other, name each once",
                         printable(text));
  }
  return {};
}

std::string rejections_text(const Json& rejected) {
  std::map<std::string, int> reasons;
  for (const Json& candidate : rejected) ++reasons[text_of(candidate, "reason")];
  std::string text;
  for (const auto& [reason, count] : reasons) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, reason);
  }
  return text;
}

void print_keys(const Json& keys, bool wide) {
  if (keys.empty()) return;  // a part may have none
  Table table({{"instance"},
               {"direction"},
               {"bucket [rows]", Align::kRight},
               {"outcome"},
               {"winner", Align::kLeft, Show::kWide},
               {"time [us]", Align::kRight},
               {"spread [us]", Align::kRight, Show::kWide},
               {"heuristic [us]", Align::kRight},
               {"gain", Align::kRight},
               {"timed", Align::kRight, Show::kWide},
               {"known", Align::kRight, Show::kWide},
               {"not reached", Align::kRight},
               {"rejected", Align::kLeft, Show::kWide}});
  for (const Json& key : keys) {
    const double winner = number_of(key, "winner_us");
    const double gain = winner > 0 ? number_of(key, "heuristic_us") / winner : 0;
    table.add({text_of(key, "name"), text_of(key, "direction"), bucket_text(key),
               key.contains("error") ? Cell("failed", Tone::kBad) : Cell(text_of(key, "outcome")),
               text_of(key, "describe"), number_text(key, "winner_us", 1), number_text(key, "winner_spread_us", 1),
               number_text(key, "heuristic_us", 1),
               gain > 0 ? Cell(fmt::format("{:.2f}x", gain), gain > 1.02 ? Tone::kGood : Tone::kPlain) : Cell(""),
               text_of(key, "timed"), text_of(key, "resumed"), text_of(key, "skipped"),
               rejections_text(member(key, "rejected"))});
  }
  print("\n");
  table.print(wide);
  write_text(stdout, early_ends_text(keys) + staying_text(keys));
}

size_t print_tune_report(const Json& report, const Options& options) {
  print("device: {}\n", device_text(member(report, "device")));
  const Json& keys = member(report, "keys");
  print_keys(keys, options.wide);
  const size_t failures = print_failures(keys, "error") + print_not_kept(report);
  if (const std::string warning = text_of(report, "warning"); !warning.empty()) {
    print_error("warning: " + warning);
  }
  std::map<std::string, int> outcomes;
  for (const Json& key : keys) ++outcomes[text_of(key, "outcome")];
  print("\ntuned: {} in {}, budget {}", count_text(outcomes["tuned"], "key"),
        seconds_text(number_of(report, "seconds")), seconds_text(number_of(report, "budget_s")));
  if (const int known = outcomes["compiled"] + outcomes["hit"]; known > 0) {
    print("; {} not timed, {} of them compiled", known, outcomes["compiled"]);
  }
  if (outcomes["other_device"] > 0) print("; {} of other devices left", outcomes["other_device"]);
  write_text(stdout, "\n");
  return failures;
}

Result<ConfigPtr> open_config(const TuneOptions& options) {
  return options.recording.empty() ? load_config(options.config) : load_recording(options.recording);
}

// Several GPUs: each takes the next instance when it is done with one.
class ParallelTuning {
 public:
  ParallelTuning(const TuneOptions& options, hstujit_context* context, const hstujit_config* config,
                 std::vector<std::string> instances, double budget_s)
      : options_(options), context_(context), config_(config), instances_(std::move(instances)), budget_s_(budget_s) {
    reports_.resize(instances_.size());
  }

  Result<Report> run() {
    {
      const auto tune_on = [this](size_t index) { work(options_.devices[index]); };
      const std::vector<std::jthread> threads = start_threads(options_.devices.size(), tune_on);
      if (threads.empty()) tune_on(0);
    }
    progress_.finish();
    return merged();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void work(int device) {
    for (size_t index = next_++; index < instances_.size(); index = next_++) {
      hstujit_run_options run = run_options(options_);
      run.device = device;
      run.op_name = instances_[index].c_str();
      // An equal part of what is left, for the instances that this GPU will still get.
      const double left = budget_s_ - std::chrono::duration<double>(Clock::now() - start_).count();
      const size_t devices = options_.devices.size();
      const size_t rounds = (instances_.size() - index + devices - 1) / devices;
      run.budget_s = std::max(left, 1.0) / static_cast<double>(rounds);
      run.progress = &Progress::callback;
      run.progress_user = &progress_;
      reports_[index] = report_on(run);
    }
  }

  // An exception would end a thread, and the process with it.
  Result<Report> report_on(const hstujit_run_options& run) const {
    try {
      return report_of(&hstujit_tune, context_, config_, &run);
    } catch (const std::bad_alloc&) {
      return out_of_memory();
    }
  }

  Result<Report> merged() const {
    Report merged;
    merged.json = {{"device", nullptr}, {"budget_s", budget_s_}, {"seconds", 0}, {"keys", Json::array()}};
    for (const auto& report : reports_) {
      if (!report->ok()) return report->status();
      if (merged.status.ok()) merged.status = (*report)->status;
      for (const char* same : {"device", "recording", "warning"}) {
        if ((*report)->json.contains(same)) merged.json[same] = (*report)->json[same];
      }
      for (const Json& key : member((*report)->json, "keys")) merged.json["keys"].push_back(key);
    }
    merged.json["seconds"] = std::chrono::duration<double>(Clock::now() - start_).count();
    merged.text = json_text(merged.json);
    return merged;
  }

  const TuneOptions& options_;
  hstujit_context* context_;
  const hstujit_config* config_;
  std::vector<std::string> instances_;
  double budget_s_;
  Clock::time_point start_ = Clock::now();
  std::atomic<size_t> next_{0};
  Progress progress_{"tune", Progress::Counts::kSeveral};
  std::vector<std::optional<Result<Report>>> reports_;  // by instance
};

Result<Report> tune_on_devices(const TuneOptions& options, const hstujit_config* config) {
  constexpr double kUsualBudget = 120;  // of a config that does not say
  HSTUJIT_ASSIGN_OR_RETURN(const Report described, report_of(&hstujit_config_describe, config));
  std::vector<std::string> instances;
  for (const Json& instance : member(described.json, "instances")) {
    const std::string name = text_of(instance, "name");
    if (options.op.empty() || options.op == name) instances.push_back(name);
  }
  // A name that the config lacks: the library has the sentence.
  if (instances.empty()) instances.push_back(options.op);
  const double configured = number_of(member(described.json, "tuning"), "budget_s", kUsualBudget);
  HSTUJIT_ASSIGN_OR_RETURN(const ContextPtr context, open_context(options.cache_dir));
  ParallelTuning tuning(options, context.get(), config, std::move(instances),
                        options.budget_s > 0 ? options.budget_s : configured);
  return tuning.run();
}

Result<Report> tune_on_device(const TuneOptions& options, const hstujit_config* config) {
  hstujit_run_options run = run_options(options);
  run.device = options.devices.front();
  return run_operation(&hstujit_tune, "tune", options, config, run);
}

Status tune(const TuneOptions& options) {
  HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config, open_config(options));
  const bool several = options.devices.size() > 1;
  const Result<Report> report =
      several ? tune_on_devices(options, config.get()) : tune_on_device(options, config.get());
  return without_a_gpu(report.ok() ? show(*report, options, print_tune_report) : report.status(), "time kernels on",
                       "hstujit prewarm --arch compiles without one, and winners that were tuned on another machine "
                       "come here with hstujit cache export and import",
                       "--devices");
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TuneOptions>();
  CLI::App& command = *app.add_subcommand("tune", "Time candidates on the GPU and keep the winners");
  CLI::Option* config = add_config(command, *options)->required(false);
  CLI::Option* recording =
      command.add_option("--from", options->recording, "instead of a config: what HSTUJIT_RECORD listed")
          ->type_name("RECORDING");
  config->excludes(recording);
  add_op_or_step(command, *options);
  add_budget(command, *options);
  command.add_option("--devices", options->device_list, "CUDA devices that tune in parallel, such as 0,1")
      ->type_name("N,N")
      ->check(CLI::Validator([options](const std::string& text) { return read_devices(text, options->devices); }, ""));
  // Times of the same source are always kept; the flag is there so that scripts can say what they rely on.
  command.add_flag("--resume")
      ->description("go on where an earlier run ended; always so: times of the same source are kept");
  add_jobs(command, *options);
  add_shard(command, *options);
  add_cache_dir(command, *options);
  add_wide(command, *options);
  add_json(command, *options);
  command.callback([options, &action] {
    if (options->config.empty() && options->recording.empty()) throw CLI::RequiredError("--config or --from");
    action = [options]() -> Status { return tune(*options); };
  });
}

}  // namespace hstujit
