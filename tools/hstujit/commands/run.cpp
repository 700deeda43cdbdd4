// hstujit run: runs instances on generated input, on a GPU or on the host, and compares with the reference.
#include <fmt/format.h>

#include <memory>

#include "tools/hstujit/command.h"
#include "tools/hstujit/report.h"

namespace hstujit {

namespace {

struct RunOptions : Options {
  bool check = false;
  uint64_t seed = 0;
  int64_t max_rows = 0;
};

Cell verdict(const Json& row) {
  if (row.contains("failure") && !row.contains("agrees")) return {"failed", Tone::kBad};
  if (!row.contains("agrees")) return {"ran"};
  return row["agrees"] == true ? Cell("agrees", Tone::kGood) : Cell("differs", Tone::kBad);
}

size_t print_report(const Json& report) {
  Table table({{"instance"},
               {"direction"},
               {"max_seq_len", Align::kRight},
               {"sequences", Align::kRight},
               {"rows", Align::kRight},
               {"left out [rows]", Align::kRight},
               {"time [ms]", Align::kRight},
               {"error", Align::kRight},
               {"bound", Align::kRight},
               {"result"}});
  const auto scientific = [](const Json& value) {
    return value.is_number() ? fmt::format("{:.1e}", value.get<double>()) : text_of(value);
  };
  for (const Json& row : member(report, "runs")) {
    table.add({text_of(row, "name"), text_of(row, "direction"), text_of(row, "max_seq_len"), text_of(row, "sequences"),
               text_of(row, "rows"), number_of(row, "rows_left_out") > 0 ? text_of(row, "rows_left_out") : "",
               number_text(row, "ms", 3), scientific(member(row, "error")), scientific(member(row, "bound")),
               verdict(row)});
  }
  fmt::print("backend: {}{}\n\n", text_of(report, "backend"),
             member(report, "checked") == true ? ", compared with the float64 reference: |out - ref| / |ref|" : "");
  table.print();
  return print_failures(member(report, "runs"), "failure");
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  const auto options = std::make_shared<RunOptions>();
  CLI::App& command = *app.add_subcommand("run", "Run instances on generated input and check the results");
  add_config(command, *options);
  add_op(command, *options);
  command.add_option("--backend", options->backend, "where it runs")
      ->type_name("cuda|host")
      ->check(CLI::IsMember({"cuda", "host"}))
      ->capture_default_str();
  command.add_flag("--check", options->check, "compare with the float64 reference; exit 1 past the bound");
  command.add_option("--max-rows", options->max_rows, "at most this many rows of each batch; default: all")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command.add_option("--seed", options->seed, "of the generated input")->type_name("N")->capture_default_str();
  add_device(command, *options);
  add_cache_dir(command, *options);
  add_json(command, *options);
  command.callback([options, &action] {
    action = [options]() -> Status {
      HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config, load_config(options->config));
      hstujit_run_options run = run_options(*options);
      run.check = options->check ? 1 : 0;
      run.seed = options->seed;
      run.max_rows = options->max_rows;
      HSTUJIT_ASSIGN_OR_RETURN(const Report report, run_operation(&hstujit_run, "run", *options, config.get(), run));
      return show(report, *options, print_report);
    };
  });
}

}  // namespace hstujit
