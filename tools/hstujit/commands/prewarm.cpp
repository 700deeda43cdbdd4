// hstujit prewarm: fills the cache with the cubins that a config needs.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/report.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

struct PrewarmOptions : Options {
  bool check = false;
};

Tone tone_of(const std::string& outcome) {
  if (outcome == "hit") return Tone::kFaint;
  return outcome == "compiled" ? Tone::kGood : Tone::kBad;
}

size_t print_prewarm_report(const Json& report, const Options& options) {
  Table table({{"instance"},
               {"direction"},
               {"bucket [rows]", Align::kRight},
               {"config", Align::kLeft, Show::kWide},
               {"from"},
               {"outcome"},
               {"compile [ms]", Align::kRight},
               {"cubin [KiB]", Align::kRight, Show::kWide},
               {"registers", Align::kRight, Show::kWide},
               {"spills [B]", Align::kRight}});
  for (const Json& row : member(report, "instances")) {
    const Json& resources = member(row, "resources");
    const bool measured = resources.is_object();
    const double spills = number_of(resources, "spill_load_bytes") + number_of(resources, "spill_store_bytes");
    const std::string outcome = row.contains("outcome") ? text_of(row, "outcome") : "failed";
    table.add({text_of(row, "name"), text_of(row, "direction"), bucket_text(row), text_of(row, "describe"),
               text_of(row, "from"), Cell(outcome, tone_of(outcome)), number_text(row, "compile_ms", 0),
               number_text(row, "cubin_bytes", 1, 1.0 / 1024), text_of(resources, "registers"),
               measured ? Cell(fmt::format("{:.0f}", spills), spills > 0 ? Tone::kBad : Tone::kPlain) : Cell("")});
  }
  print("device: {}\n", device_text(member(report, "device")));
  if (!table.empty()) {  // a part may have no key
    print("\n");
    table.print(options.wide);
  }
  const size_t failures = print_failures(member(report, "instances"), "error") + print_not_kept(report);
  const auto count = [&](const char* name) { return static_cast<int64_t>(number_of(report, name)); };
  const bool checked = member(report, "checked") == true;
  const auto some = [&](const char* name) {
    return count(name) > 0 ? fmt::format(", {} {}", count(name), name) : std::string();
  };
  // Keys that nothing was chosen for have no kernel that could be counted.
  const int64_t keys = count("without_kernel"), failed = count("failed") - keys;
  print("\n{}: {}, {}{}{}{}{}\n", checked ? "checked" : "prewarmed", count_text(number_of(report, "kernels"), "kernel"),
        checked ? "" : fmt::format("{} compiled, ", count("compiled")), count_text(number_of(report, "hits"), "hit"),
        some("missing"), failed > 0 ? fmt::format(", {} failed", failed) : "",
        keys > 0 ? fmt::format(", {} without a kernel", count_text(static_cast<double>(keys), "key")) : "");
  return failures;
}

}  // namespace

void add_prewarm(CLI::App& app, Action& action) {
  const auto options = std::make_shared<PrewarmOptions>();
  CLI::App& command = *app.add_subcommand("prewarm", "Fill the cache with the kernels that a config needs");
  add_config(command, *options);
  add_op_or_step(command, *options);
  add_arch(command, *options);
  add_jobs(command, *options);
  add_shard(command, *options);
  command.add_flag("--check", options->check,
                   "compile and write nothing: list which kernels exist; exit 1 if any is missing");
  add_cache_dir(command, *options);
  add_wide(command, *options);
  add_json(command, *options);
  command.callback([options, &action] {
    action = [options]() -> Status {
      HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config, load_config(options->config));
      hstujit_run_options run = run_options(*options);
      run.check = options->check ? 1 : 0;
      HSTUJIT_ASSIGN_OR_RETURN(const Report report,
                               run_operation(&hstujit_prewarm, "prewarm", *options, config.get(), run));
      return show(report, *options, print_prewarm_report);
    };
  });
}

}  // namespace hstujit
