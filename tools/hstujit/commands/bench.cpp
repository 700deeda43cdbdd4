// hstujit bench: times instances beside the ceilings of the device, all in one run.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "compiler/support/files.h"
#include "compiler/support/json.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/run_limits.h"
#include "compiler/support/text.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/output_file.h"
#include "tools/hstujit/report.h"

namespace hstujit {

namespace {

struct BenchOptions : Options {
  std::string grid;
  std::string out;
  int repeats = 0;
};

void print_environment(const Json& report) {
  const Json& environment = member(report, "environment");
  const Json& ceilings = member(report, "ceilings");
  print("device: {}, {}, driver {}, NVRTC {}\n", text_of(environment, "gpu"), text_of(environment, "arch"),
        driver_text(member(environment, "driver")), text_of(environment, "nvrtc"));
  print("ceilings of this run: copy {} GB/s", number_text(ceilings, "copy_gb_per_s", 0));
  if (number_of(ceilings, "matmul_tflop_per_s") > 0) {
    print(", matrix product {} TFLOP/s ({})", number_text(ceilings, "matmul_tflop_per_s", 0),
          text_of(ceilings, "matmul_source"));
  }
  print("; cold L2, median of {} launch{}\n\n", text_of(report, "repeats"),
        number_of(report, "repeats") == 1 ? "" : "es");
}

size_t print_bench_report(const Json& report, const Options& options) {
  print_environment(report);
  Table table({{"instance"},
               {"direction"},
               {"max_seq_len", Align::kRight},
               {"result"},
               {"rows", Align::kRight, Show::kWide},
               {"config", Align::kLeft, Show::kWide},
               {"from", Align::kLeft, Show::kWide},
               {"time [ms]", Align::kRight},
               {"spread [%]", Align::kRight, Show::kWide},
               {"work [GFLOP]", Align::kRight, Show::kWide},
               {"data [MB]", Align::kRight, Show::kWide},
               {"TFLOP/s", Align::kRight, Show::kWide},
               {"GB/s", Align::kRight, Show::kWide},
               {"limit [ms]", Align::kRight},
               {"of limit [%]", Align::kRight},
               {"limited by"}});
  for (const Json& row : member(report, "results")) {
    if (row.contains("error")) {
      table.add(
          {text_of(row, "name"), text_of(row, "direction"), text_of(row, "max_seq_len"), Cell("failed", Tone::kBad)});
      continue;
    }
    table.add({text_of(row, "name"), text_of(row, "direction"), text_of(row, "max_seq_len"), "", text_of(row, "rows"),
               text_of(row, "describe"), text_of(row, "from") + batches_text(row), number_text(row, "median_ms", 4),
               number_text(row, "spread", 1, 100), number_text(row, "gflop", 1), number_text(row, "bytes", 1, 1e-6),
               number_text(row, "tflop_per_s", 1), number_text(row, "gb_per_s", 0), number_text(row, "limit_ms", 4),
               number_text(row, "fraction_of_limit", 1, 100), text_of(row, "limit_by")});
  }
  table.print(options.wide);
  return print_failures(member(report, "results"), "error");
}

// A bare list of entries of "ops", which the library reads as a config; anything else was meant for --config.
Result<ConfigPtr> load_grid(const std::string& path) {
  const Result<std::string> text = read_file(path, kMaxConfigBytes);
  if (text.ok()) {
    const Result<Json> json = parse_json(*text, {.comments = true});
    if (json.ok() && !json->is_array()) {
      return Status(Code::kInvalidConfig, fmt::format("{}: a grid is a JSON list of op instances; a config goes to "
                                                      "--config",
                                                      printable(path)));
    }
  }
  return load_config(path, "--grid");
}

Status bench(const BenchOptions& options) {
  if (!options.out.empty())
    HSTUJIT_RETURN_IF_ERROR(check_output_file("--out", options.out, OutputKind::kReport, options, options.grid));
  HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config,
                           options.grid.empty() ? load_config(options.config) : load_grid(options.grid));
  hstujit_run_options run = run_options(options);
  run.repeats = options.repeats;
  const Result<Report> timed = run_operation(&hstujit_bench, "bench", options, config.get(), run);
  if (!timed.ok()) {
    return without_a_gpu(timed.status(), "time kernels on", "hstujit prewarm --arch compiles without one");
  }
  const Report& report = *timed;
  const Status shown = show(report, options, print_bench_report);
  if (options.out.empty()) return shown;
  // It is written where some have failed, too.
  const Status written = write_file_atomically(options.out, report.text + "\n");
  if (written.ok()) return shown;
  if (!shown.ok()) {
    print_error(written.message());
    return shown;
  }
  return Status(Code::kIo, written.message());
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& command = *app.add_subcommand("bench", "Time instances and compare them with the device's ceilings");
  CLI::Option* config = add_config(command, *options)->required(false);
  CLI::Option* grid =
      command.add_option("--grid", options->grid, "instead of a config: a list of instances, such as bench/grid.json")
          ->type_name("FILE");
  config->excludes(grid);
  add_op(command, *options);
  command.add_option("--out", options->out, "also write the report to this file")->type_name("FILE");
  command.add_option("--repeats,--repeat", options->repeats, "timed launches of each instance; default: 50")
      ->type_name("N")
      ->transform(whole_number_from(1, kMaxRepeats));
  add_device(command, *options);
  add_cache_dir(command, *options);
  add_wide(command, *options);
  add_json(command, *options);
  command.callback([options, &action] {
    if (options->config.empty() && options->grid.empty()) throw CLI::RequiredError("--config or --grid");
    action = [options]() -> Status { return bench(*options); };
  });
}

}  // namespace hstujit
