// hstujit emit: writes the generated source of instances, their IR, and a program that runs them.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/report.h"

namespace hstujit {

namespace {

size_t print_emit_report(const Json& report, const Options&) {
  print("device: {}\n", device_text(member(report, "device")));
  Fields fields;
  for (const Json& row : member(report, "instances")) {
    if (!row.contains("files")) continue;
    print_paragraph("{}: {}", row_text(row, bucket_text(row)), text_of(row, "describe"));
    std::string folder;
    for (const auto& [kind, file] : row["files"].items()) {
      const std::filesystem::path path = text_of(file);
      if (std::exchange(folder, path.parent_path().string()) != path.parent_path()) fields.add("  folder", folder);
      fields.add("  " + kind, path.filename().string());
    }
    fields.print();
    fields = {};
  }
  return print_failures(member(report, "instances"), "error");
}

Status emit(const Options& options) {
  HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config, load_config(options.config));
  HSTUJIT_ASSIGN_OR_RETURN(const Report report,
                           run_operation(&hstujit_emit, "emit", options, config.get(), run_options(options)));
  return show(report, options, print_emit_report);
}

}  // namespace

void add_emit(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  options->directory = ".";
  CLI::App& command = *app.add_subcommand("emit", "Write the generated CUDA source, its IR and a launcher");
  add_config(command, *options);
  add_op_or_step(command, *options);
  add_arch(command, *options);
  command.add_option("-o,--output", options->directory, "folder for the files")
      ->type_name("DIR")
      ->capture_default_str();
  add_cache_dir(command, *options);
  add_json(command, *options);
  command.callback([options, &action] { action = [options] { return emit(*options); }; });
}

}  // namespace hstujit
