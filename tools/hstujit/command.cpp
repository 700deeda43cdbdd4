#include "tools/hstujit/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "compiler/support/numbers.h"
#include "compiler/support/suggest.h"
#include "compiler/support/text.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/progress.h"
#include "tools/hstujit/report.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

// "60s" becomes the number of seconds before CLI11 reads it as one.
std::string duration_in_seconds(std::string& text) {
  const Result<double> seconds = parse_duration(text);
  if (!seconds.ok()) return seconds.status().message();
  text = fmt::format("{}", *seconds);
  return "";
}

}  // namespace

CLI::Validator whole_number_from(uint64_t lowest, uint64_t highest) {
  const auto canonical = [lowest, highest](std::string& text) {
    const std::optional<uint64_t> number = whole_number(text);
    if (!number || *number < lowest || *number > highest)
      return fmt::format("{} is not allowed; it must be a whole number from {} to {}", quote(text), lowest, highest);
    text = fmt::format("{}", *number);
    return std::string();
  };
  return {canonical, fmt::format("{} to {}", lowest, highest)};
}

CLI::Validator one_of(std::vector<std::string> allowed) {
  const auto check = [allowed = std::move(allowed)](std::string& text) {
    if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return std::string();
    return fmt::format("{} is not allowed{}; allowed: {}", quote(text),
                       did_you_mean(closest(text, {allowed.begin(), allowed.end()})), fmt::join(allowed, ", "));
  };
  return {check, ""};
}

CLI::Option* add_config(CLI::App& command, Options& options) {
  return command.add_option("--config", options.config, "JSON config: the op instances (docs/config.md)")
      ->required()
      ->type_name("FILE");
}

void add_op(CLI::App& command, Options& options) {
  command.add_option("--op", options.op, "only this instance of the config")->type_name("NAME");
}

void add_op_or_step(CLI::App& command, Options& options) {
  command.add_option("--op", options.op, "only this instance of the config; NAME/STEP: only this step of a program")
      ->type_name("NAME");
}

void add_arch(CLI::App& command, Options& options) {
  command
      .add_option(
          "--arch", options.arch,
          "sm_90a, a product name such as H200, or a DeviceSpec file; default: the config's device, else the GPU")
      ->type_name("ARCH");
}

void add_cache_dir(CLI::App& command, Options& options) {
  command.add_option("--cache-dir", options.cache_dir, "cache directory; default: HSTUJIT_CACHE_DIR")->type_name("DIR");
}

void add_jobs(CLI::App& command, Options& options) {
  command.add_option("--jobs,-j", options.jobs, "compiles in parallel; at most, and by default, HSTUJIT_COMPILE_JOBS")
      ->type_name("N")
      ->transform(whole_number_from(1, 1024));
}

void add_device(CLI::App& command, Options& options) {
  command.add_option("--device", options.device, "CUDA device")
      ->type_name("N")
      ->transform(whole_number_from(0, kLargestDevice));
}

void add_budget(CLI::App& command, Options& options) {
  command.add_option("--budget", options.budget_s, "time for the whole call, such as 60s or 5m; default: the config's")
      ->type_name("TIME")
      ->transform(CLI::Validator(duration_in_seconds, ""));
}

void add_shard(CLI::App& command, Options& options) {
  command
      .add_option("--shard", options.shard,
                  "part of the keys: INDEX/COUNT, auto (as torchrun, mpirun or Slurm say), or auto/COUNT; default: all")
      ->type_name("PART")
      ->check([&options](const std::string& text) {
        const auto part = parse_shard(text, [](const char* name) {
          const char* const value = std::getenv(name);
          return std::string(value == nullptr ? "" : value);
        });
        if (!part.ok()) return part.status().message();
        options.part = *part;
        return std::string();
      });
}

void add_json(CLI::App& command, Options& options) {
  command.add_flag("--json", options.json, "print the report as JSON (docs/reports.md)");
}

void add_wide(CLI::App& command, Options& options) {
  command.add_flag("--wide", options.wide, "all columns of tables, and no text cut; default: what fits 100 columns");
}

hstujit_run_options run_options(const Options& options) {
  hstujit_run_options run = HSTUJIT_INIT(hstujit_run_options);
  run.arch = options.arch.empty() ? nullptr : options.arch.c_str();
  run.op_name = options.op.empty() ? nullptr : options.op.c_str();
  run.directory = options.directory.empty() ? nullptr : options.directory.c_str();
  run.backend = options.backend == "host" ? HSTUJIT_BACKEND_HOST : HSTUJIT_BACKEND_CUDA;
  run.jobs = options.jobs;
  run.device = options.device;
  run.budget_s = options.budget_s;
  run.shard_index = options.part.index;
  run.shard_count = options.part.count;
  return run;
}

Result<Report> run_operation(Operation operation, const std::string& label, const Options& options,
                             const hstujit_config* config, hstujit_run_options run) {
  HSTUJIT_ASSIGN_OR_RETURN(const ContextPtr context, open_context(options.cache_dir));
  Progress progress(label);
  run.progress = &Progress::callback;
  run.progress_user = &progress;
  return report_of(operation, context.get(), config, &run);
}

Status show(const Report& report, const Options& options, Printer printer) {
  if (options.json) {
    print_json(report.text);
    return report.status;
  }
  const bool named = printer(report.json, options) > 0;
  for (const Json& layer : member(report.json, "passed_over")) {
    print_error(fmt::format("warning: nothing of {} is used: {}", printable(text_of(layer, "path")),
                            text_of(layer, "problem")));
  }
  return named && !report.status.ok() ? Status(report.status.code(), "") : report.status;
}

Status without_a_gpu(const Status& status, std::string_view use, std::string_view to_do, std::string_view option) {
  constexpr std::string_view kNumber = "device is ";
  if (status.code() != Code::kNoDriver && status.code() != Code::kNoDevice) return status;
  if (status.message().starts_with(kNumber))
    return Status(status.code(), fmt::format("{} is {}", option, status.message().substr(kNumber.size())));
  const std::string sentence = status.message().empty() ? fmt::format("there is no GPU to {}", use) : status.message();
  return Status(status.code(), fmt::format("{}; {}", sentence, to_do));
}

}  // namespace hstujit
