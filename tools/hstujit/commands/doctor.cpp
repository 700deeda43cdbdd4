// hstujit doctor: what this machine has and what is missing.
#include <fmt/format.h>

#include <memory>

#include "compiler/support/text.h"
#include "tools/hstujit/command.h"
#include "tools/hstujit/output.h"
#include "tools/hstujit/report.h"
#include "tools/hstujit/values.h"

namespace hstujit {

namespace {

// Adds a part. A finding below names, once, what is wrong with a part, which may be missing or of another build, and
// what still works without it.
void add_part(Fields& fields, const std::string& name, const Json& part, const char* unusable = "cannot be used") {
  if (member(part, "ok") != true) return fields.add(name, Cell(unusable, Tone::kBad));
  const std::string version = driver_text(member(part, "version"));
  fields.add(name, Cell((version.empty() ? "" : version + ", ") + text_of(part, "path"), Tone::kGood));
}

Cell directory(const Json& directory) {
  std::string text = text_of(directory, "path");
  if (text_of(directory, "role") == "remote") {
    if (text_of(directory, "problem").empty()) return {text + ", remote, answers", Tone::kGood};
    return {text + ", remote, is no use", Tone::kBad};
  }
  const bool writable = text_of(directory, "role") == "user";
  if (!writable) text += ", read-only layer";
  const bool ok = member(directory, "ok") == true;
  if (member(directory, "exists") != true) text += writable && ok ? ", will be created" : ", does not exist";
  if (const std::string system = text_of(directory, "file_system"); !system.empty()) {
    text += fmt::format(", on a file system of other machines ({})", system);
  }
  if (member(directory, "group_writable") == true) text += ", writable by its group";
  if (!ok && writable) text += ", not used";
  return {text, ok ? Tone::kGood : Tone::kBad};
}

// Returns how many of them keep kernels from running.
size_t print_findings(const Json& findings) {
  size_t errors = 0;
  for (const Json& finding : findings) {
    const std::string severity = text_of(finding, "severity");
    errors += severity == "error" ? 1 : 0;
    const std::string about = text_of(finding, "about"), problem = text_of(finding, "problem");
    // A sentence about a variable begins with its name.
    print("\n");
    const std::string whole = severity + ", " + (problem.starts_with(about) ? problem : about + ": " + problem);
    print_paragraph("{}", whole);
    write_text(stdout, paragraph("  what to do: " + one_line(text_of(finding, "what_to_do")), 4));
  }
  const auto count = static_cast<double>(findings.size());
  if (errors > 0) {
    print("\ndoctor: {} of {} {} kernels from running\n", errors, count_text(count, "finding"),
          errors == 1 ? "keeps" : "keep");
  } else {
    print("\ndoctor: nothing keeps kernels from running; {}\n", count_text(count, "warning"));
  }
  return errors;
}

size_t print_doctor_report(const Json& report, const Options&) {
  const Json& library = member(report, "library");
  Fields fields;
  fields.add("hstujit",
             fmt::format("{}, generator {}", text_of(library, "version"), shown_digest(text_of(library, "generator"))));
  add_part(fields, "CUDA driver", member(report, "driver"));
  int ordinal = 0;
  for (const Json& device : member(report, "devices")) {
    const std::string problem = text_of(device, "problem");
    fields.add(fmt::format("GPU {}", ordinal++),
               problem.empty() ? Cell(device_text(device), Tone::kGood) : Cell("cannot be used", Tone::kBad));
  }
  if (ordinal == 0) fields.add("GPU", "none");
  add_part(fields, "compiler", member(report, "compiler"));
  const bool asked = member(member(report, "compiler"), "ok") == true;
  add_part(fields, "NVRTC", member(report, "nvrtc"),
           asked ? "cannot be used" : "unknown: the compiler library opens it");
  add_part(fields, "host backend", member(report, "host_backend"));
  add_part(fields, "worker", member(report, "worker"));
  for (const Json& cache : member(report, "cache")) fields.add("cache", directory(cache));
  if (member(report, "cache").empty()) {
    fields.add("cache", Cell("none", Tone::kBad));
  }
  fields.add("on a miss", text_of(report, "on_miss"));
  fields.add("length mode", text_of(report, "length_mode"));
  for (const auto& [name, value] : member(report, "environment").items()) fields.add(name, text_of(value));
  fields.print();
  return print_findings(member(report, "findings"));
}

Status diagnose(const Options& options) {
  const hstujit_context_options context = context_options(options.cache_dir);
  HSTUJIT_ASSIGN_OR_RETURN(Report report, report_of(&hstujit_diagnose, &context));
  if (member(report.json, "healthy") != true) report.status = Status(Code::kCheckFailed, "");
  return show(report, options, print_doctor_report);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand("doctor", "Show driver, GPU, compilers, libraries and cache directories");
  add_cache_dir(command, *options);
  add_json(command, *options);
  command.callback([options, &action] { action = [options] { return diagnose(*options); }; });
}

}  // namespace hstujit
