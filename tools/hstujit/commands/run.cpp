// hstujit run: runs instances on generated input, on a GPU or on the host, and compares with the reference, and
// launches with one another.
#include <fmt/format.h>

#include <limits>
#include <memory>

#include "compiler/support/run_limits.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/report.h"

namespace hstujit {

namespace {

struct RunOptions : Options {
  bool check = false;
  uint64_t seed = 0;
  int64_t max_rows = 0;
  int repeats = 1;
};

// CLI11 would take -1, and numbers that are too large, for others.
Cell verdict(const Json& row) {
  if (row.contains("failure") && member(row, "agrees") != false) return {"failed", Tone::kBad};
  if (!row.contains("agrees")) return {"ran"};
  return row["agrees"] == true ? Cell("agrees", Tone::kGood) : Cell("differs", Tone::kBad);
}

// Prints how many launches of --repeats gave the same bytes.
Cell equal_launches(const Json& row) {
  if (!row.contains("repeats")) return "";
  const bool all = row["repeats_equal"] == row["repeats"];
  return {fmt::format("{} of {}", text_of(row, "repeats_equal"), text_of(row, "repeats")),
          all ? Tone::kGood : Tone::kBad};
}

size_t print_run_report(const Json& report, const Options& options) {
  Table table({{"instance"},
               {"direction"},
               {"max_seq_len", Align::kRight},
               {"sequences", Align::kRight, Show::kWide},
               {"rows", Align::kRight},
               {"left out", Align::kRight, Show::kWide},
               {"time [ms]", Align::kRight},
               {"error", Align::kRight},
               {"bound", Align::kRight},
               {"equal", Align::kRight},
               {"result"}});
  const auto scientific = [](const Json& value) {
    return value.is_number() ? fmt::format("{:.1e}", value.get<double>()) : text_of(value);
  };
  for (const Json& row : member(report, "runs")) {
    table.add({text_of(row, "name"), text_of(row, "direction"), text_of(row, "max_seq_len"), text_of(row, "sequences"),
               text_of(row, "rows"), number_of(row, "sequences_left_out") > 0 ? text_of(row, "sequences_left_out") : "",
               number_text(row, "ms", 3), scientific(member(row, "error")), scientific(member(row, "bound")),
               equal_launches(row), verdict(row)});
  }
  print("backend: {}{}\n\n", text_of(report, "backend"),
        member(report, "checked") == true ? ", compared with the float64 reference: |out - ref| / |ref|" : "");
  table.print(options.wide);
  return print_failures(member(report, "runs"), "failure");
}

// Without a GPU there is another way to run.
Status naming_the_host_backend(const Status& status, const Options& options) {
  return options.backend == "host" ? status : without_a_gpu(status, "run on", "--backend host runs on the CPU");
}

Status run(const RunOptions& options) {
  if (options.backend == "host" && options.device != 0)
    return Status(Code::kInvalidArgument,
                  fmt::format("--device is {}; --backend host runs on no CUDA device, leave it out", options.device));
  HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config, load_config(options.config));
  hstujit_run_options run = run_options(options);
  run.check = options.check ? 1 : 0;
  run.seed = options.seed;
  run.max_rows = options.max_rows;
  run.repeats = options.repeats;
  const Result<Report> report = run_operation(&hstujit_run, "run", options, config.get(), run);
  return naming_the_host_backend(report.ok() ? show(*report, options, print_run_report) : report.status(), options);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "Run instances on generated input and check the results");
  add_config(command, *options);
  add_op(command, *options);
  command.add_option("--backend", options->backend, "where it runs")
      ->type_name("cuda|host")
      ->check(one_of({"cuda", "host"}))
      ->capture_default_str();
  command.add_flag("--check", options->check, "compare with the float64 reference; exit 1 past the bound");
  command.add_option("--max-rows", options->max_rows, "at most this many rows of each batch; default: all")
      ->type_name("N")
      ->transform(whole_number_from(1, kMaxRowsOfRun));
  command
      .add_option("--repeats,--repeat", options->repeats,
                  "launches on the same input, whose outputs are compared bitwise; past 1, exit 1 when some differ and "
                  "deterministic kernels are asked for")
      ->type_name("N")
      ->transform(whole_number_from(1, kMaxRepeats))
      ->capture_default_str();
  command.add_option("--seed", options->seed, "of the generated input")
      ->type_name("N")
      ->transform(whole_number_from(0, std::numeric_limits<uint64_t>::max()))
      ->capture_default_str();
  add_device(command, *options);
  add_cache_dir(command, *options);
  add_wide(command, *options);
  add_json(command, *options);
  command.callback([options, &action] { action = [options]() -> Status { return run(*options); }; });
}

}  // namespace hstujit
