// hstujit report: what explain and cache ls say of a config, as one page of HTML that loads nothing.
#include "tools/hstujit/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <memory>

#include "compiler/support/files.h"
#include "compiler/support/read_limits.h"
#include "compiler/support/text.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/output_file.h"
#include "tools/hstujit/report_page.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

struct ReportOptions : Options {
  std::string file;
  std::string bench;
};

// JSON as a script element may hold it: no "</script" and no "<!--" ends it early.
std::string script_text(const Json& json) {
  return fmt::format("{}", fmt::join(split(json_text(json), '<'), "\\u003c"));
}

std::string page_of(const Json& data) {
  constexpr std::string_view kPlace = "@REPORT@";
  std::string page(report_page());
  return page.replace(page.find(kPlace), kPlace.size(), script_text(data));
}

Result<Json> bench_report(const std::string& path) {
  HSTUJIT_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxReportBytes));
  HSTUJIT_ASSIGN_OR_RETURN(Json json, parse_json(text, {.depth = kMaxReportDepth}));
  if (!member(json, "results").is_array())
    return Status(Code::kInvalidArgument, fmt::format("{} is no report of hstujit bench", path));
  return json;
}

size_t print_failed(const Json& report, const Options&) { return print_failures(member(report, "instances"), "error"); }

Status write_report(const ReportOptions& options) {
  HSTUJIT_RETURN_IF_ERROR(check_output_file("--output", options.file, OutputKind::kPage, options));
  Json data = {{"version", hstujit_version()},
               {"date", fmt::format("{:%Y-%m-%d}", fmt::localtime(std::time(nullptr)))}};
  if (!options.bench.empty()) {
    Result<Json> bench = bench_report(options.bench);
    if (!bench.ok()) return of_input("--bench", options.bench, bench.status());
    data["bench"] = std::move(*bench);
  }
  HSTUJIT_ASSIGN_OR_RETURN(const ConfigPtr config, load_config(options.config));
  HSTUJIT_ASSIGN_OR_RETURN(const Report explained,
                           run_operation(&hstujit_explain, "report", options, config.get(), run_options(options)));
  HSTUJIT_ASSIGN_OR_RETURN(const ContextPtr context, open_context(options.cache_dir));
  HSTUJIT_ASSIGN_OR_RETURN(const Report listed, report_of(&hstujit_cache_list, context.get()));
  data["explain"] = explained.json;
  data["cache"] = listed.json;
  HSTUJIT_RETURN_IF_ERROR(write_file_atomically(options.file, page_of(data)));
  print_paragraph("report: {} in {}",
                  count_text(static_cast<double>(member(explained.json, "instances").size()), "key"), options.file);
  return explained.status.ok() ? Status() : show(explained, options, print_failed);
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App& command = *app.add_subcommand("report", "Write a page of HTML: each key's kernel, times, and the cache");
  add_config(command, *options);
  add_op_or_step(command, *options);
  add_arch(command, *options);
  command.add_option("--bench", options->bench, "what hstujit bench --out wrote: times and their limits")
      ->type_name("FILE");
  command.add_option("-o,--output", options->file, "the page")->required()->type_name("FILE");
  add_cache_dir(command, *options);
  command.callback([options, &action] { action = [options] { return write_report(*options); }; });
}

}  // namespace hstujit
