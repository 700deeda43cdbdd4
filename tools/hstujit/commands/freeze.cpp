// hstujit freeze: writes down which kernel each key of a config gets.
#include <fmt/format.h>

#include <memory>

#include "compiler/support/files.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/output_file.h"
#include "tools/hstujit/report.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

struct FreezeOptions : Options {
  std::string file;
};

size_t print_frozen_failures(const Json& report, const Options&) {
  return print_failures(member(report, "failed"), "error");
}

Status freeze(const FreezeOptions& options) {
  HSTUJIT_RETURN_IF_ERROR(check_output_file("--output", options.file, OutputKind::kChoices, options));
  HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config, load_config(options.config));
  HSTUJIT_ASSIGN_OR_RETURN(const Report report,
                           run_operation(&hstujit_freeze, "freeze", options, config.get(), run_options(options)));
  if (!report.status.ok()) return show(report, options, print_frozen_failures);
  HSTUJIT_RETURN_IF_ERROR(write_file_atomically(options.file, report.text + "\n"));
  print("checksum {}\n", text_of(report.json, "checksum"));
  print_paragraph("frozen: {} in {}", count_text(static_cast<double>(member(report.json, "choices").size()), "key"),
                  options.file);
  return {};
}

}  // namespace

void add_freeze(CLI::App& app, Action& action) {
  const auto options = std::make_shared<FreezeOptions>();
  CLI::App& command = *app.add_subcommand("freeze", "Write down which kernel each key gets, for HSTUJIT_FROZEN");
  add_config(command, *options);
  add_op_or_step(command, *options);
  add_arch(command, *options);
  command.add_option("-o,--output", options->file, "the file")->required()->type_name("FILE");
  add_cache_dir(command, *options);
  command.callback([options, &action] { action = [options] { return freeze(*options); }; });
}

}  // namespace hstujit
